package program

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-io/flotilla/internal/command"
)

// TestWrongCallsOfMember: a wrong call names the flag and what belongs there, and makes no folder.
func TestWrongCallsOfMember(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "east")
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"nothing":         {nil, "error: --name is missing: the cluster is called so, and the context of its kubeconfig\n"},
		"no folder":       {[]string{"--name", "east"}, "error: --data-dir is missing: name the folder that keeps the member\n"},
		"no name":         {[]string{"--name", "East", "--data-dir", dir}, "error: --name \"East\" is no name of a cluster: it has at most 63 characters, each a-z, 0-9 or -, the first and last no -\n"},
		"a word too many": {[]string{"east"}, "error: \"east\" is too much: flotillad member --name NAME --data-dir DIR [flags]\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var errOut bytes.Buffer
			cmd := New(Options{})
			cmd.SetErr(&errOut)
			cmd.SetArgs(append([]string{"member"}, tc.args...))
			if code := command.Run(t.Context(), cmd); code != 2 {
				t.Errorf("exit code %d", code)
			}
			if diff := cmp.Diff(tc.want, errOut.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the folder is there: %v", err)
	}
}
