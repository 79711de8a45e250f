// Package ratelimit limits how often each user may ask for a certificate.
//
// In go a clock and the name of a user who asks; out comes whether he may ask now. It
// remembers the last of those who asked, and nothing of why they do.
package ratelimit
