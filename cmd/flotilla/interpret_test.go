package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/flotilla-io/flotilla/cmd/flotilla/commandtest"
)

// interpretRun runs interpret as a shell would, and returns all that it says.
func interpretRun(t *testing.T, in string, args ...string) (code int, out, errOut string) {
	t.Helper()
	words := []string{"interpret"}
	if len(args) > 0 && args[0] == cobra.ShellCompRequestCmd {
		words, args = []string{args[0], "interpret"}, args[1:]
	}
	return commandtest.Run(t.Context(), newCommand("flotilla"), in, append(words, args...)...).All()
}

func TestInterpretGolden(t *testing.T) {
	const (
		rules    = " -f ../../examples/custom-kind/kinds/customization.yaml"
		pool     = " --desired-file ../../examples/custom-kind/app/pool.yaml"
		observed = " --observed-file ../../examples/custom-kind/try/observed.yaml"
		items    = " --status-file ../../examples/custom-kind/try/items.yaml"
		broken   = " -f testdata/interpret/broken.yaml"
		webs     = " --desired-file testdata/interpret/webs.yaml"
		all      = pool + observed + items + " --desired-replica 2"
	)
	stdin, err := os.ReadFile("testdata/interpret/webs.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for name, call := range map[string]string{
		"check":                "--check" + rules,
		"check-run":            "--check" + rules + all,
		"check-json":           "--check -o json" + broken,
		"check-yaml":           "--check -o yaml" + rules,
		"check-broken":         "--check" + broken + all,
		"replicas":             "--operation interpretReplica" + rules + pool,
		"replicas-json":        "--operation InterpretReplica -o json" + rules + pool,
		"components":           "--operation interpretcomponent" + rules + pool,
		"revise":               "--operation reviseReplica --desired-replica 2" + rules + pool,
		"revise-yaml":          "--operation reviseReplica --desired-replica 2 -o yaml" + rules + pool,
		"revise-none":          "--operation reviseReplica" + rules + pool,
		"revise-negative":      "--operation reviseReplica --desired-replica -1" + rules + pool,
		"dependencies":         "--operation interpretDependency" + rules + pool,
		"dependencies-yaml":    "--operation interpretDependency -o yaml" + rules + pool,
		"retain":               "--operation retain" + rules + pool + observed,
		"retain-nothing":       "--operation retain" + rules + pool,
		"status":               "--operation interpretStatus" + rules + observed,
		"health":               "--operation interpretHealth" + rules + observed,
		"health-json":          "--operation interpretHealth -o json" + rules + observed,
		"aggregate":            "--operation aggregateStatus" + rules + pool + items,
		"aggregate-one-by-one": "--operation aggregateStatus --status-file testdata/interpret/one-by-one.yaml" + rules + pool,
		"aggregate-binding":    "--operation aggregateStatus --status-file testdata/interpret/binding.yaml" + rules + pool,
		"aggregate-nameless":   "--operation aggregateStatus --status-file testdata/interpret/nameless.yaml" + rules + pool,
		"aggregate-nothing":    "--operation aggregateStatus" + rules + pool,
		"broken-compile":       "--operation interpretReplica" + broken + pool,
		"broken-undefined":     "--operation reviseReplica --desired-replica 1" + broken + pool,
		"broken-nil":           "--operation retain" + broken + pool + observed,
		"broken-type":          "--operation interpretStatus" + broken + observed,
		"broken-loop":          "--operation interpretHealth" + broken + observed,
		"broken-error":         "--operation interpretDependency" + broken + pool,
		"native":               "--operation interpretReplica" + webs,
		"native-yaml":          "--operation interpretDependency -o yaml -n default" + webs,
		"stdin":                "--operation reviseReplica --desired-replica 1 --desired-file -",
		"stdin-twice":          "--operation retain --desired-file - --observed-file -",
		"both-sides":           "--operation interpretHealth" + rules + pool + observed,
		"other-kind":           "--operation interpretReplica" + rules + webs,
		"no-customization":     "--check -f testdata/interpret/webs.yaml",
		"missing":              "--check -f testdata/interpret/missing.yaml",
		"unknown":              "--operation prune" + rules + pool,
		"nothing":              "",
		"two-things":           "--check --edit" + rules,
		"files-and-names":      "--check workerpools" + rules,
		"output":               "--operation retain -o wide" + rules + pool,
		"edit-stdin":           "--edit -f -",
		"no-object":            "--operation interpretHealth" + rules,
	} {
		t.Run(name, func(t *testing.T) {
			in := string(stdin)
			if name == "edit-stdin" {
				in = "apiVersion: config.karmada.io/v1alpha1\nkind: ResourceInterpreterCustomization\nmetadata: {name: a}\nspec: {target: {apiVersion: v1, kind: A}, customizations: {}}\n"
			}
			code, out, errOut := interpretRun(t, in, strings.Fields(call)...)
			got := fmt.Sprintf("$ flotilla interpret %s\n%sstderr: %sexit code %d\n", call, out, errOut, code)
			golden(t, filepath.Join("interpret", "golden", name+".txt"), got)
		})
	}
}

// Scripts say whatever they like, but not to the terminal.
func TestInterpretEscapes(t *testing.T) {
	_, out, errOut := interpretRun(t, "", "--operation", "interpretDependency", "-f", "testdata/interpret/broken.yaml", "--desired-file", "../../examples/custom-kind/app/pool.yaml")
	if strings.Contains(out+errOut, "\x1b") || !strings.Contains(errOut, `\u001b[31mnot today`) {
		t.Errorf("output %q, error %q", out, errOut)
	}
}

// editWith sets an editor: it is a program that is given a file.
func editWith(t *testing.T, script string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "editor")
	if err := os.WriteFile(path, []byte("#!/bin/sh\nset -e\n"+script), 0o755); err != nil { //nolint:gosec // it is run
		t.Fatal(err)
	}
	t.Setenv("KUBE_EDITOR", path)
	t.Setenv("TMPDIR", t.TempDir())
}

func TestInterpretEdit(t *testing.T) {
	before, err := os.ReadFile("testdata/interpret/several.yaml")
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		editor string
		args   []string
		code   int
		want   func(string) string // of the file
		out    string              // in the whole output
		left   int                 // files that are kept for the user
	}{
		"one script": {
			editor: `sed -i 's/return desired/return observed/' "$1"`,
			want:   func(s string) string { return strings.Replace(s, "  return desired", "  return observed", 1) },
			out:    "-  return desired\n+  return observed\n",
		},
		"one more": {
			editor: `printf 'function AggregateStatus(desired, items)\n  return desired\nend\n' >> "$1"`,
			want: func(s string) string {
				const more = "    statusAggregation:\n      luaScript: |\n        function AggregateStatus(desired, items)\n          return desired\n        end\n"
				return strings.Replace(s, "          return desired\n        end\n", "          return desired\n        end\n"+more, 1)
			},
			out: "+function AggregateStatus(desired, items)\n",
		},
		"one less": {
			editor: `sed -i '/^function InterpretHealth/d' "$1"`,
			want: func(s string) string {
				return strings.Replace(s, "    # about health\n    healthInterpretation:\n      luaScript: \"function InterpretHealth(o) return true end\"\n", "", 1)
			},
			out: "-function InterpretHealth(o) return true end\n",
		},
		"nothing":      {editor: `true`, out: "nothing was changed"},
		"only space":   {editor: `sed -i 's/return desired$/return desired   /' "$1"`, out: "nothing was changed"},
		"given up":     {editor: `: > "$1"`, code: 1, out: "the file is empty"},
		"with its doc": {editor: `grep -q 'ReviseReplica(obj, replica) returns' "$1"`, args: []string{"--show-doc"}, out: "nothing was changed"},
		"a mistake and mended": {
			editor: `if grep -q '^--! error: .*syntax error' "$1"; then sed -i 's/return (desired/return observed/' "$1"; else sed -i 's/return desired/return (desired/' "$1"; fi`,
			want:   func(s string) string { return strings.Replace(s, "  return desired", "  return observed", 1) },
			out:    "+  return observed\n",
		},
		"a file that is changed meanwhile": {
			editor: `sed -i 's/return desired/return observed/' "$1"; echo '# more' >> "$FILE"`,
			want:   func(s string) string { return s + "# more\n" },
			code:   1, out: "was changed meanwhile: edit it again; the edited scripts are in", left: 1,
		},
		"a mistake and left":   {editor: `sed -i 's/return desired/return (desired/' "$1"`, code: 1, out: "nothing was written: Retain: ", left: 1},
		"a line in no script":  {editor: `grep -q 'local x' "$1" || sed -i '1i local x = 1' "$1"`, code: 1, out: "is in no script", left: 1},
		"an operation twice":   {editor: `grep -q twice "$1" || printf -- '---- [Retain] ----\n' >> "$1"`, code: 1, out: "Retain is there twice", left: 1},
		"an editor that fails": {editor: `exit 3`, code: 1, out: "a problem with the editor", left: 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			editWith(t, tc.editor)
			file := filepath.Join(t.TempDir(), "several.yaml")
			if err := os.WriteFile(file, before, 0o600); err != nil {
				t.Fatal(err)
			}
			t.Setenv("FILE", file)
			code, out, errOut := interpretRun(t, "", append([]string{"--edit", "-f", file}, tc.args...)...)
			if code != tc.code || !strings.Contains(out+errOut, tc.out) {
				t.Errorf("code %d, output %q, error %q; want code %d and %q", code, out, errOut, tc.code, tc.out)
			}
			want := string(before)
			if tc.want != nil {
				if want = tc.want(want); want == string(before) {
					t.Fatal("the case expects no change")
				}
			}
			got, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, string(got)); diff != "" {
				t.Errorf("the file (-want +got):\n%s", diff)
			}
			left, err := filepath.Glob(filepath.Join(os.Getenv("TMPDIR"), "*.lua"))
			if err != nil || len(left) != tc.left {
				t.Errorf("left behind: %v, %v; want %d", left, err, tc.left)
			}
		})
	}
}

// A file is replaced, not written over: links to it and its mode stay.
func TestInterpretEditLink(t *testing.T) {
	content, err := os.ReadFile("testdata/interpret/several.yaml")
	if err != nil {
		t.Fatal(err)
	}
	editWith(t, `sed -i 's/return desired/return observed/' "$1"`)
	folder := t.TempDir()
	file, link := filepath.Join(folder, "several.yaml"), filepath.Join(t.TempDir(), "link.yaml")
	if err := os.WriteFile(file, content, 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(file, link); err != nil {
		t.Fatal(err)
	}
	if code, out, errOut := interpretRun(t, "", "--edit", "-f", link); code != 0 {
		t.Fatalf("code %d, output %q, error %q", code, out, errOut)
	}
	got, err := os.ReadFile(file)
	if err != nil || bytes.Equal(got, content) {
		t.Errorf("the file is as it was: %v", err)
	}
	info, err := os.Lstat(link)
	if err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is no link any more: %v, %v", info, err)
	}
	if info, err = os.Stat(file); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("the mode has changed: %v, %v", info, err)
	}
	if entries, err := os.ReadDir(folder); err != nil || len(entries) != 1 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

// What the shell offers.
func TestInterpretComplete(t *testing.T) {
	const hubless = "--kubeconfig=testdata/interpret/missing.yaml"
	cases := map[string]struct {
		args []string
		want []string
	}{
		"operations": {[]string{"--operation", ""}, []string{
			"InterpretReplica", "InterpretComponent", "ReviseReplica", "InterpretDependency", "Retain", "InterpretStatus",
			"InterpretHealth", "AggregateStatus", ":4",
		}},
		"outputs":             {[]string{"--output="}, []string{"text", "yaml", "json", ":4"}},
		"flags":               {[]string{"--desired-"}, []string{"--desired-file", "--desired-replica", ":4"}},
		"files":               {[]string{"--observed-file", ""}, []string{":0"}},
		"names without a hub": {[]string{hubless, ""}, []string{":4"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			code, out, errOut := interpretRun(t, "", append([]string{"__complete"}, tc.args...)...)
			if code != 0 {
				t.Fatalf("code %d, error %q", code, errOut)
			}
			var got []string
			for line := range strings.Lines(out) {
				word, _, _ := strings.Cut(strings.TrimSpace(line), "\t")
				got = append(got, word)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("offered (-want +got):\n%s", diff)
			}
		})
	}
}
