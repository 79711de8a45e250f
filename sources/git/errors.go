package git

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"github.com/flotilla-io/flotilla/internal/egress"
	"github.com/flotilla-io/flotilla/sources/git/hostkey"
	"github.com/flotilla-io/flotilla/sources/git/wire"
)

// Errors that callers distinguish. Each is wrapped with the URL and, where there
// is one, the next step for the user; none contains a secret.
var (
	// ErrURL means that the address is not a URL of a repository that can be read.
	ErrURL = errors.New("unusable repository URL")
	// ErrCredentials means that the Secret's keys are not usable credentials.
	ErrCredentials = errors.New("unusable credentials")
	// ErrRef means that the ref itself is malformed.
	ErrRef = errors.New("unusable ref")
	// ErrRefNotFound means that the remote does not have the ref or commit.
	ErrRefNotFound = errors.New("ref not found")
	// ErrUnauthorized means that the remote refused the credentials, or requires
	// some.
	ErrUnauthorized = errors.New("access denied")
	// ErrRepositoryNotFound means that the remote has no such repository.
	ErrRepositoryNotFound = errors.New("repository not found")
	// ErrHostKey means that an SSH server could not be trusted.
	ErrHostKey = hostkey.ErrNotTrusted
	// ErrHostKeyUnknown is an ErrHostKey: known_hosts does not name the host.
	ErrHostKeyUnknown = hostkey.ErrUnknown
	// ErrHostKeyChanged is an ErrHostKey: known_hosts has another key for the
	// host.
	ErrHostKeyChanged = hostkey.ErrChanged
	// ErrRedirect means that the remote redirected to an address that is not
	// followed.
	ErrRedirect = egress.ErrRedirect
	// ErrTLS means that the server speaks no TLS, or none that can be trusted.
	ErrTLS = errors.New("TLS failed")
	// ErrTooLarge means that the remote sent more than Limits allow.
	ErrTooLarge = wire.ErrTooLarge
	// ErrMalformed means that the remote sent something that is not Git's
	// protocol.
	ErrMalformed = wire.ErrMalformed
	// ErrObjectFormat means that the repository names its objects by other hashes
	// than SHA-1.
	ErrObjectFormat = wire.ErrObjectFormat
	// ErrNoTag means that a commit was not found by an annotated tag.
	ErrNoTag = errors.New("no annotated tag")
	// ErrConflict means that others kept changing a ref that was being written.
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

// beforeHost matches everything up to the last '@' of a text that does not parse
// as a URL, for example because of a password with a '/' in it.
var beforeHost = regexp.MustCompile(`(?s)^([A-Za-z]*:(?://)?)?.*@`)

// remoteText makes a name from a repository fit for a message. Other text of a
// remote is not repeated, because the server that responds need not be a Git server.
func remoteText(s string) string { return wire.Excerpt(s) }

// notFoundText and deniedText match the messages of Git servers; the protocol has
// no error codes.
var (
	notFoundText = regexp.MustCompile(`(?i)not found|does not exist|not appear to be a git repository|no such|could not be found`)
	deniedText   = regexp.MustCompile(`(?i)permission denied|access denied|not authori[sz]ed|unauthori[sz]ed|authentication failed|forbidden`)
)

// classify turns a remote's error message into an error that callers know. The
// message itself is not shown.
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

// refusal turns a remote's refusal into an error that callers know, and keeps any
// other error.
func refusal(err error) error {
	var refused *wire.Refusal
	if errors.As(err, &refused) {
		return classify(refused.Words)
	}
	return err
}
