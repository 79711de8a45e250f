package localfleet_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/flotilla-io/flotilla/internal/localfleet"
)

// echo answers each line with itself.
func echo(t *testing.T) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = conn.Close() }()
				_, _ = io.Copy(conn, conn)
			}()
		}
	}()
	return listener.Addr().String()
}

// says sends a line and returns what comes back: the line, "silence", or "end".
func says(t *testing.T, conn net.Conn, line string, timeout time.Duration) string {
	t.Helper()
	if err := conn.SetDeadline(time.Now().Add(timeout)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, line+"\n"); err != nil {
		return "end"
	}
	got, err := bufio.NewReader(conn).ReadString('\n')
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return "silence"
	case err != nil:
		return "end"
	}
	return got[:len(got)-1]
}

func TestLink(t *testing.T) {
	link, err := localfleet.NewLink(t.Context(), echo(t))
	if err != nil {
		t.Fatal(err)
	}
	dial := func() net.Conn {
		t.Helper()
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", link.Address())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		return conn
	}
	const long, short = time.Minute, 50 * time.Millisecond
	check := func(what, want, got string) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	before := dial()
	check("before", "a", says(t, before, "a", long))
	link.Cut()
	check("what was there when it was cut", "silence", says(t, before, "b", short))
	buffered := localfleet.Buffered(link)
	during := dial()
	err = wait.PollUntilContextTimeout(t.Context(), time.Millisecond, long, true, func(context.Context) (bool, error) {
		return localfleet.Buffered(link) > buffered, nil // or it would come only once the link is mended
	})
	if err != nil {
		t.Fatalf("a connection is not taken: %v", err)
	}
	check("what came while it was cut", "silence", says(t, during, "c", short))
	link.Mend()
	check("what was there, once it is mended", "end", says(t, before, "d", long))
	check("what came meanwhile", "end", says(t, during, "e", long))
	after := dial()
	check("after", "f", says(t, after, "f", long))
	if err := link.Close(); err != nil {
		t.Error(err)
	}
	check("once it is closed", "end", says(t, after, "g", long))
}
