// Package agentstest gives a test the loops by which clusters in pull mode come and
// go, as few as there may be: the one that approves their agents, and the one that
// gives each cluster what goes with it.
//
// In goes a manager; it has these loops afterwards. The package starts nothing.
package agentstest
