// Package confirmation answers agents that were away before they had removed a copy, and ask whether it may still go.
//
// In go the Works of clusters in pull mode whose status asks (lastcopy.Question), and what lastcopy judges of them; out comes an
// annotation on each whose copy may go, which answers this one question. While a copy has to stay nothing is written: it is judged again
// until it may go. An ordinary removal asks nothing. The package never writes a status, and never calls a member.
//
// Events: DeletionBlocked on the Work, once for each question whose copy has to stay.
package confirmation
