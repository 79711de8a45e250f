package s3

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/flotilla-io/flotilla/internal/egress"
)

// Errors that callers distinguish. Each is wrapped with what was asked for and, where there is one, the next step for the user.
var (
	// ErrPlace means that the endpoint or the name of the bucket cannot be one.
	ErrPlace = errors.New("unusable address")
	// ErrCredentials means that a Secret has no usable credentials.
	ErrCredentials = errors.New("unusable credentials")
	// ErrNotFound means that there is no such bucket, or object.
	ErrNotFound = errors.New("not found")
	// ErrUnauthorized means that the server refused the keys, or wants some.
	ErrUnauthorized = errors.New("access denied")
	// ErrRedirect means that the server named another address.
	ErrRedirect = egress.ErrRedirect
	// ErrTLS means that the server speaks no TLS, or none that can be trusted.
	ErrTLS = errors.New("TLS failed")
	// ErrTooLarge means that an answer, or the list, is larger than Limits allow.
	ErrTooLarge = errors.New("too large")
	// ErrMalformed means that an answer is not what S3 says.
	ErrMalformed = errors.New("malformed answer")
	// ErrChanged means that an object is not the one of the list any more.
	ErrChanged = errors.New("changed while it was read")
	// ErrSame means that an object is still the version that the caller has.
	ErrSame = errors.New("not changed")
)

// BusyError says that a server wants to be left alone for a while.
type BusyError struct {
	// Status is that of HTTP.
	Status int
	// After is how long; zero if the server does not say.
	After time.Duration
}

// Error says how long the server wants to be left alone.
func (e *BusyError) Error() string {
	if e.After == 0 {
		return fmt.Sprintf("the server is busy (HTTP %d)", e.Status)
	}
	return fmt.Sprintf("the server is busy (HTTP %d), and wants to be left alone for %s", e.Status, e.After)
}

// longestPause is how long a server may ask to be left alone.
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
