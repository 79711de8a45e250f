// Package heard tells whether what is known of a copy in a cluster is of now.
//
// In go when clusters were heard of, and when the statuses of their Works changed; out comes whether a cluster has answered since a
// binding asked (Presence), and for how long the status of a Work is no evidence yet (Freshness). Nothing is read or written.
package heard
