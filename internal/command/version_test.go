package command_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/flotilla-io/flotilla/internal/command"
	"github.com/flotilla-io/flotilla/internal/telemetry"
)

// TestTheCommandVersion prints what flotilla version does, of one side.
func TestTheCommandVersion(t *testing.T) {
	build := telemetry.Version{Program: "v1.2.3", Commit: "abc", Go: "go1.99"}
	for name, tc := range map[string]struct {
		args string
		code int
		want string
	}{
		"for people":           {"version", 0, "Server Version: v1.2.3\n"},
		"as JSON":              {"version -o json", 0, "{\n  \"serverVersion\": {\n    \"version\": \"v1.2.3\",\n    \"commit\": \"abc\",\n    \"goVersion\": \"go1.99\"\n  }\n}\n"},
		"as YAML":              {"version -o yaml", 0, "serverVersion:\n  commit: abc\n  goVersion: go1.99\n  version: v1.2.3\n"},
		"as nothing else":      {"version -o wide", 2, "error: there is no -o \"wide\" here: it is json or yaml\n"},
		"of nothing else":      {"version all", 2, "error: \"all\" is too much: program version [flags]\n"},
		"of a program's flags": {"--version", 0, "program version v1.2.3\n"},
	} {
		t.Run(name, func(t *testing.T) {
			root := &cobra.Command{Use: "program", Version: "v1.2.3"}
			root.AddCommand(command.Version("Server", build))
			root.SetArgs(strings.Fields(tc.args))
			var out bytes.Buffer
			root.SetOut(&out)
			root.SetErr(&out)
			code := command.Run(t.Context(), root)
			if diff := cmp.Diff(tc.want, out.String()); diff != "" || code != tc.code {
				t.Errorf("exit code %d, want %d (-want +got):\n%s", code, tc.code, diff)
			}
		})
	}
}
