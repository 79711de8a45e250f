// Package rulestest tests tables of rules for kinds.
//
// In go a table, and rows of facts or folders of examples, which are objects as their projects document them; out come
// failures of the test. Golden files stand beside the examples. It never decides what is right: rows and files do.
package rulestest
