"""Everything that is named after hermes-agent: for its plugins and for the tests of its contract.

Our own code does not use these names. The modules that plugins import by name hand over to this
package.
"""
