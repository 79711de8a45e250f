package wire

import (
	"errors"
	"io"

	"github.com/flotilla-io/flotilla/policies/excerpt"
)

var (
	// ErrMalformed means that a server sent something that is not Git's protocol.
	ErrMalformed = errors.New("malformed answer")
	// ErrTooLarge means that a server sent more than is allowed.
	ErrTooLarge = errors.New("too large")
	// ErrObjectFormat means that the repository names its objects by other hashes than SHA-1.
	ErrObjectFormat = errors.New("object format not supported")
	// ErrSilent means that a server ended the conversation without a word.
	ErrSilent = errors.New("nothing was answered")
)

// Refusal says that a server answered with an error.
type Refusal struct {
	// Words are the server's. They tell cases apart and are not to be shown.
	Words string
}

// Error returns a text without the server's words.
func (*Refusal) Error() string { return "the remote refuses" }

// maxText is how much of a text from a repository a message repeats, in runes, including the mark of a cut.
const maxText = 201

// Excerpt makes a text from a repository fit for a message: one line, bounded, without control characters.
func Excerpt(s string) string { return excerpt.Runes(excerpt.Line(s), maxText) }

// Bounded is a reader that fails once more than a limit is read. It records faults of the reader below, because decoders
// above turn them into text.
type Bounded struct {
	r     io.Reader
	left  int64
	limit error
	hit   bool
	fault error
}

// Bound returns a reader of at most limit bytes of r; beyond, it returns err.
func Bound(r io.Reader, limit int64, err error) *Bounded {
	return &Bounded{r: r, left: limit, limit: err}
}

// Read implements io.Reader, up to the limit.
func (b *Bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		b.hit = true
		return 0, b.limit
	}
	n, err := b.r.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	if err != nil && !errors.Is(err, io.EOF) {
		b.fault = err
	}
	return n, err
}

// Cause returns why a decoder that reads from b failed with err: the limit, or a fault of the reader below, comes first.
func (b *Bounded) Cause(err error) error {
	switch {
	case err == nil:
		return nil
	case b.hit:
		return b.limit
	case b.fault != nil:
		return b.fault
	default:
		return err
	}
}
