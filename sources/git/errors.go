package git

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"github.com/flotilla-io/flotilla/policies/excerpt"
)

// What callers branch on. Each is wrapped with the URL and the next step; none
// carries a secret.
var (
	// ErrURL says that the address is not one that can be read.
	ErrURL = errors.New("unusable repository URL")
	// ErrCredentials says that the Secret's keys do not make up credentials.
	ErrCredentials = errors.New("unusable credentials")
	// ErrRef says that the ref itself is malformed.
	ErrRef = errors.New("unusable ref")
	// ErrRefNotFound says that the remote answered without the ref.
	ErrRefNotFound = errors.New("ref not found")
	// ErrUnauthorized says that the remote refused the credentials, or wants some.
	ErrUnauthorized = errors.New("access denied")
	// ErrRepositoryNotFound says that the remote knows no such repository.
	ErrRepositoryNotFound = errors.New("repository not found")
	// ErrHostKey says that an SSH server could not be trusted.
	ErrHostKey = errors.New("SSH host key not trusted")
	// ErrHostKeyUnknown is an ErrHostKey: known_hosts does not name the host.
	ErrHostKeyUnknown = fmt.Errorf("%w: unknown host", ErrHostKey)
	// ErrHostKeyChanged is an ErrHostKey: known_hosts has another key for it.
	ErrHostKeyChanged = fmt.Errorf("%w: key changed", ErrHostKey)
	// ErrRedirect says that the remote redirected to where we do not follow.
	ErrRedirect = errors.New("redirect refused")
	// ErrTLS says that the server's certificate could not be verified.
	ErrTLS = errors.New("TLS certificate not trusted")
	// ErrTooLarge says that the remote sent more than Limits allow.
	ErrTooLarge = errors.New("too large")
	// ErrMalformed says that the remote sent something that is not Git.
	ErrMalformed = errors.New("malformed answer")
	// ErrConflict says that others kept changing a ref that was written.
	ErrConflict = errors.New("ref changed meanwhile")
)

// MaskURL returns raw without what may be a secret, for messages: its user
// information, and what follows '?' or '#'.
func MaskURL(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.Opaque != "" {
		return beforeHost.ReplaceAllString(raw, "$1***@")
	}
	user := ""
	if u.User != nil {
		user = "***@"
	}
	if u.RawQuery != "" {
		u.RawQuery = "***"
	}
	if u.Fragment != "" {
		u.Fragment = "***"
	}
	u.User = nil
	return strings.Replace(u.String(), "://", "://"+user, 1)
}

// beforeHost is what precedes the last '@' of something that is no URL: a
// password with a '/' in it is one of the ways not to be one.
var beforeHost = regexp.MustCompile(`(?s)^([A-Za-z]*:(?://)?)?.*@`)

// maxRemoteText is how much of a name in a repository a message repeats, in runes, mark included.
const maxRemoteText = 201

// remoteText makes a name that a repository has fit for a message: one line,
// bounded, no control characters. Other words of a remote are not repeated: what
// answers need not be a repository.
func remoteText(s string) string { return excerpt.Runes(excerpt.Line(s), maxRemoteText) }

// notFoundText and deniedText are the words that Git servers use; the protocol
// has no codes for them.
var (
	notFoundText = regexp.MustCompile(`(?i)not found|does not exist|not appear to be a git repository|no such|could not be found`)
	deniedText   = regexp.MustCompile(`(?i)permission denied|access denied|not authori[sz]ed|unauthori[sz]ed|authentication failed|forbidden`)
)

// classify turns a remote's refusal in words into an error that callers know.
// The words themselves are not shown.
func classify(words string) error {
	switch {
	case deniedText.MatchString(words):
		return fmt.Errorf("%w: the remote refuses the credentials, or wants some", ErrUnauthorized)
	case notFoundText.MatchString(words):
		return fmt.Errorf("%w: check spec.url, and what the credentials may read", ErrRepositoryNotFound)
	default:
		return fmt.Errorf("%w: the remote refuses, for a reason that is not shown here", ErrMalformed)
	}
}
