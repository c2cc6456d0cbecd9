"""Kinds that people define: CustomResourceDefinitions, their schemas, and how they come to be served."""
