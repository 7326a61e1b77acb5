"""The provider plugin that the Pulumi engine takes for `aws`."""
