"""The controller's end of the conversation with the agent on the DUT."""
