// Package quota tells in each FederatedResourceQuota what its namespace uses.
//
// It reads quotas and ResourceBindings and writes status.overall and
// status.overallUsed, which it alone writes, a moment after something changed:
// many bindings that change at once are one write, and unchanged is none. What is
// used is added up from the bindings each time. It refuses nothing: that is
// admission's, in the control plane. Shares of single clusters are not looked at.
package quota
