"""Which messages a kernel can print: read from its source, compared with the catalogue."""
