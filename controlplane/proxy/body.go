package proxy

import (
	"io"
	"net/http"
)

// loose returns a body that yields what the caller sends, and that can be closed
// while the caller is silent. A transport waits for its reading of a body to end
// when an answer came before that: the caller, who saw the beginning of the
// answer, may never send the rest, and would wait for the answer's end. What is
// left of the caller's body ends with the handler.
func (b *buffers) loose(body io.ReadCloser) io.ReadCloser {
	if body == nil || body == http.NoBody {
		return body
	}
	out, in := io.Pipe()
	go func() {
		buffer := b.Get()
		defer b.Put(buffer)
		_, err := io.CopyBuffer(in, body, buffer)
		_ = in.CloseWithError(err) // it returns nil
	}()
	return out
}
