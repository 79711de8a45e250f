package artifacts

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/flotilla-io/flotilla/internal/pty"
)

// TestMeter: a long upload shows how far it is, on a terminal alone, and leaves nothing behind.
func TestMeter(t *testing.T) {
	upload := func(out io.Writer, all int64) {
		m := newMeter(out)
		for _, sent := range []int64{0, all / 1000, all / 2, all} {
			m.show(sent, all)
		}
		m.end()
	}
	var pipe bytes.Buffer
	upload(&pipe, 4<<20)
	if pipe.Len() > 0 {
		t.Errorf("a pipe gets %q", pipe.String())
	}
	for name, test := range map[string]struct {
		all  int64
		want string
	}{
		"a long one":  {4 << 20, "\rsending 0 bytes of 4.0 MiB\rsending 2.0 MiB of 4.0 MiB\rsending 4.0 MiB of 4.0 MiB\r" + strings.Repeat(" ", 26) + "\r"},
		"a short one": {1 << 10, ""},
	} {
		terminal, err := pty.Open(80, 24)
		if err != nil {
			t.Fatal(err)
		}
		upload(terminal.Program, test.all)
		if err := terminal.Program.Close(); err != nil {
			t.Fatal(err)
		}
		got, _ := io.ReadAll(terminal.Screen) // ends with an error, as the other end is closed
		if string(got) != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
		if err := terminal.Screen.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
