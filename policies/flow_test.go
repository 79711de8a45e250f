package policies_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the expected output of the flow scripts")

// TestFlow runs the scripts in testdata/flow. A script is a list of commands,
// each followed by an optional body, a line of four dashes and what the command
// prints. Comments start with a hash. The commands are in commands_test.go.
func TestFlow(t *testing.T) {
	paths, err := filepath.Glob("testdata/flow/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no flow scripts: %v", err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			got := run(t, string(data))
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(string(data), got); diff != "" {
				t.Errorf("%s (-want +got); run with -update and review the diff:\n%s", path, diff)
			}
		})
	}
}

// step is one command of a script.
type step struct {
	// before are the comments and empty lines before it.
	before, command, body string
}

// run returns the script with the output that its commands give now.
func run(t *testing.T, script string) string {
	t.Helper()
	w := newWorld()
	var out strings.Builder
	steps, tail := parse(script)
	for _, s := range steps {
		result, err := w.do(strings.Fields(s.command), s.body)
		if err != nil {
			result = "error: " + err.Error()
		}
		if result == "" {
			result = "ok"
		}
		fmt.Fprintf(&out, "%s%s\n%s----\n%s\n", s.before, s.command, s.body, strings.TrimRight(result, "\n"))
	}
	return out.String() + tail
}

// parse takes a script apart: an empty line ends the output of a command, four
// dashes end its body.
func parse(script string) (steps []step, tail string) {
	var current step
	state := "before"
	for line := range strings.Lines(script) {
		text := strings.TrimRight(line, "\n")
		switch {
		case state == "output" && text != "":
			continue
		case state == "output":
			steps, current, state = append(steps, current), step{before: line}, "before"
		case state == "before" && (text == "" || strings.HasPrefix(text, "#")):
			current.before += line
		case state == "before":
			current.command, state = text, "body"
		case text == "----":
			state = "output"
		default:
			current.body += line
		}
	}
	if state == "output" {
		return append(steps, current), ""
	}
	return steps, current.before
}
