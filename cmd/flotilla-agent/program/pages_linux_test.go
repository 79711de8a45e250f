package program

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What the loader has changed before the program could not read back from its
// file: without it the program would crash.
func TestPartsOfTheProgramThatWereChangedStayInMemory(t *testing.T) {
	const mappings = `55d000000000-55d000236000 r-xp 00000000 fd:00 42 /bin/agent
Rss:                 2048 kB
Anonymous:              0 kB
VmFlags: rd ex mr mw me
55d000236000-55d00027b000 r--p 00236000 fd:00 42 /bin/agent
Rss:                  276 kB
Anonymous:            276 kB
55d00027b000-55d000280000 rw-p 0027b000 fd:00 42 /bin/agent
Anonymous:              0 kB
55d000280000-55d000290000 r--p 00280000 fd:00 42 /bin/agent
Anonymous:              0 kB
7f0000000000-7f0000001000 r--p 00000000 fd:00 43 /lib/libc.so.6
Anonymous:              0 kB
7f0000001000-7f0000002000 rw-p 00000000 00:00 0
Anonymous:              0 kB
55d000300000-55d000310000 r--p 00300000 fd:00 42 /bin/agent
Rss:                    4 kB
`
	want := []span{{0x55d000000000, 0x55d000236000}, {0x55d000280000, 0x55d000290000}}
	if diff := cmp.Diff(want, asInFile(strings.NewReader(mappings), "/bin/agent"), cmp.AllowUnexported(span{})); diff != "" {
		t.Errorf("what is given back (-want +got):\n%s", diff)
	}
}
