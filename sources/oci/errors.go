package oci

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/flotilla-io/flotilla/internal/egress"
)

// Errors that callers distinguish. Each is wrapped with the repository and, where there is one, the next step for the
// user.
var (
	// ErrURL means that the address is no repository of a registry.
	ErrURL = errors.New("unusable repository URL")
	// ErrCredentials means that a Secret has no usable credentials.
	ErrCredentials = errors.New("unusable credentials")
	// ErrRef means that the reference itself is malformed.
	ErrRef = errors.New("unusable reference")
	// ErrNotFound means that the registry has no such repository, tag or digest.
	ErrNotFound = errors.New("not found")
	// ErrUnauthorized means that the registry refused the credentials, or wants some.
	ErrUnauthorized = errors.New("access denied")
	// ErrRedirect means that the registry named an address that is not followed.
	ErrRedirect = egress.ErrRedirect
	// ErrTLS means that the server speaks no TLS, or none that can be trusted.
	ErrTLS = errors.New("TLS failed")
	// ErrTooLarge means that an answer is larger than Limits allow.
	ErrTooLarge = errors.New("too large")
	// ErrMalformed means that an answer is not what a registry says.
	ErrMalformed = errors.New("malformed answer")
	// ErrDigest means that content is not what its digest says.
	ErrDigest = errors.New("content differs from its digest")
	// ErrLayer means that an artifact has no layer such as the one that is asked for.
	ErrLayer = errors.New("no such layer")
	// ErrStatus is an answer that nothing else is known about.
	ErrStatus = errors.New("unexpected answer")
)

// FailedError says that something went wrong in a registry, which may do better the next time.
type FailedError struct {
	// Status is that of HTTP.
	Status int
}

// Error names the status.
func (e *FailedError) Error() string { return fmt.Sprintf("the registry answered HTTP %d", e.Status) }

// BusyError says that a registry wants to be left alone for a while.
type BusyError struct {
	// Status is that of HTTP.
	Status int
	// After is how long; zero if the registry does not say.
	After time.Duration
}

// Error says how long the registry wants to be left alone.
func (e *BusyError) Error() string {
	if e.After == 0 {
		return fmt.Sprintf("the registry is busy (HTTP %d)", e.Status)
	}
	return fmt.Sprintf("the registry is busy (HTTP %d), and wants to be left alone for %s", e.Status, e.After)
}

// longestPause is how long a registry may ask to be left alone.
const longestPause = time.Hour

// pause reads the header Retry-After; zero if it says nothing.
func pause(header string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseUint(header, 10, 32); err == nil {
		return min(time.Duration(seconds)*time.Second, longestPause)
	}
	if at, err := http.ParseTime(header); err == nil {
		return min(max(at.Sub(now), 0), longestPause).Round(time.Second)
	}
	return 0
}
