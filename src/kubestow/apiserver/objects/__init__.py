"""What can be done with objects, without HTTP: requests and the controllers within both come through here."""
