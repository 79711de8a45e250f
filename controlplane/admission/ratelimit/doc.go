// Package ratelimit limits how often each user may ask for a certificate.
//
// In go a clock and the name of a user; out comes whether that user may ask now. The
// package remembers a fixed number of users, those who asked last.
package ratelimit
