package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/flotilla-io/flotilla/cmd/flotilla/commandtest"
)

// run runs the whole command line as a shell would.
func run(t *testing.T, calledAs string, args ...string) (code int, out, errOut string) {
	t.Helper()
	t.Setenv("HOME", "/home/user") // the default of a flag is in it
	t.Setenv("KUBECACHEDIR", t.TempDir())
	return commandtest.Run(t.Context(), newCommand(calledAs), "", args...).All()
}

// TestHelp: what a user sees first.
func TestHelp(t *testing.T) {
	for name, args := range map[string][]string{
		"help":         {"--help"},
		"help-get":     {"get", "--help"},
		"help-top":     {"top", "--help"},
		"help-explain": {"explain", "--help"},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, errOut := run(t, "flotilla", args...)
			if code != 0 || errOut != "" {
				t.Errorf("code %d, error %q", code, errOut)
			}
			golden(t, filepath.Join("main", name+".txt"), out)
		})
	}
}

// TestHelpOnATerminal: what flags are for is broken between words, and all of it is there.
func TestHelpOnATerminal(t *testing.T) {
	const width = 80
	root := newCommand("flotilla")
	root.SetUsageTemplate(usageTemplate(&cobra.Command{}, width))
	got := commandtest.Run(t.Context(), root, "", "get", "--help")
	_, flags, found := strings.Cut(got.Out, "\nFlags:\n")
	if got.Code != 0 || !found || !strings.Contains(strings.Join(strings.Fields(flags), " "), "Matching objects must satisfy all of the specified label constraints.") {
		t.Fatalf("%+v", got)
	}
	for _, line := range strings.Split(flags, "\n") {
		if len(line) > width && !strings.Contains(line, "http") { // behind an address nothing is broken
			t.Errorf("%d characters: %s", len(line), line)
		}
	}
}

// TestCommands: each has its heading, says what it does, and can be called with
// the flags that all have.
func TestCommands(t *testing.T) {
	root := newCommand("flotilla")
	root.InitDefaultHelpCmd()
	seen := map[string]bool{}
	for _, cmd := range root.Commands() {
		if seen[cmd.Name()] {
			t.Errorf("%s is there twice", cmd.Name())
		}
		seen[cmd.Name()] = true
		listed := slices.ContainsFunc(groups, func(g struct {
			id, title string
			commands  []string
		}) bool {
			return slices.Contains(g.commands, cmd.Name())
		})
		if !listed && !cmd.Hidden {
			t.Errorf("%s has no heading in groups", cmd.Name())
		}
		if cmd.Short == "" || strings.HasSuffix(cmd.Short, ".") {
			t.Errorf("%s says %q of itself", cmd.Name(), cmd.Short)
		}
	}
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		cmd.InheritedFlags() // panics where two flags have the same letter
		for _, child := range cmd.Commands() {
			walk(child)
		}
	}
	walk(root)
}

func TestPlugin(t *testing.T) {
	_, out, _ := run(t, "kubectl-flotilla", "get", "--help")
	if !strings.Contains(out, "kubectl flotilla get KIND") {
		t.Errorf("as a plugin it calls itself:\n%s", out)
	}
	if code, out, _ := run(t, "flotilla", "__complete", "get", "-s", ""); code != 0 || !strings.HasPrefix(out, "karmada\nmembers\nall\n:4\n") {
		t.Errorf("code %d, offered %q", code, out)
	}
}

// TestNamesAreNotFiles: where a command takes names, no shell offers the files of the
// folder that it is in.
func TestNamesAreNotFiles(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	var walk func(cmd *cobra.Command, words []string)
	walk = func(cmd *cobra.Command, words []string) {
		for _, child := range cmd.Commands() {
			if child.Hidden || child.Name() == "kubectl" { // whose words are kubectl's
				continue
			}
			words := append(slices.Clone(words), child.Name())
			if child.Name() == "plan" { // which takes folders
				continue
			}
			if _, out, _ := run(t, "flotilla", append(slices.Concat([]string{"__complete"}, words), "")...); strings.HasSuffix(out, ":0\n") {
				t.Errorf("flotilla %s completes files: %q", strings.Join(words, " "), out)
			}
			walk(child, words)
		}
	}
	walk(newCommand("flotilla"), nil)
}

func TestCompletionScripts(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if code, out, errOut := run(t, "flotilla", "completion", shell); code != 0 || errOut != "" || !strings.Contains(out, "__complete") {
			t.Errorf("%s: code %d, error %q, %d bytes", shell, code, errOut, len(out))
		}
	}
	if code, _, errOut := run(t, "flotilla", "completion", "tcsh"); code != 2 {
		t.Errorf("a shell that there is not: code %d, error %q", code, errOut)
	}
}

func TestWrongCalls(t *testing.T) {
	for line, says := range map[string]string{
		"boat":                        `error: unknown command "boat" for "flotilla": flotilla --help lists them` + "\n",
		"help boat":                   `error: unknown command "boat" for "flotilla": flotilla --help lists them` + "\n",
		"get --boat":                  "error: unknown flag: --boat; flotilla get --help lists the flags\n",
		"serve --x=y":                 "error: the control plane is a program of its own: flotillad serve\n",
		"init --x":                    "error: there is nothing to install: flotillad serve --data-dir DIR runs a control plane, and is all of it\n",
		"deinit":                      "error: there is nothing to take out: flotillad serve ends by Ctrl-C or SIGTERM, and its --data-dir is all that it leaves\n",
		"addons list":                 "error: there are no addons: estimator and descheduler are parts of flotillad, and search and metrics across clusters are not there yet\n",
		"plan":                        "error: the files of the change are missing: flotilla plan FOLDER\n",
		"events deployment/web":       `error: "deployment/web" is too much: flotilla events --for deployment/web` + "\n",
		"events a b":                  `error: "a" is too much: flotilla events --for KIND/NAME` + "\n",
		"promote":                     "error: KIND is missing: flotilla promote KIND NAME -C CLUSTER\n",
		"promote deployment":          "error: NAME is missing: flotilla promote KIND NAME -C CLUSTER\n",
		"suspend":                     "error: source or kustomization is missing: flotilla suspend source git NAME, or flotilla suspend kustomization NAME\n",
		"patc":                        `error: unknown command "patc" for "flotilla": is patch meant?` + "\n",
		"gett":                        `error: unknown command "gett" for "flotilla": is get meant?` + "\n",
		"reconcile ks/web":            `error: "ks/web" is written in two words: flotilla reconcile kustomization web` + "\n",
		"reconcile gitrepository web": `error: "gitrepository web" is written so: flotilla reconcile source git web` + "\n",
		"resume OCIRepositories":      `error: "OCIRepositories" is written so: flotilla resume source oci NAME` + "\n",
		"suspend gitrepository/web":   `error: "gitrepository/web" is written in two words: flotilla suspend source git web` + "\n",
		"reconcile deployment/web":    `error: unknown command "deployment/web": flotilla reconcile --help lists them` + "\n",
		"reconcile source fleet":      `error: the kind is missing: flotilla reconcile source git fleet, or flotilla reconcile source oci fleet, or flotilla reconcile source bucket fleet` + "\n",
	} {
		if code, _, errOut := run(t, "flotilla", strings.Fields(line)...); code != 2 || errOut != says {
			t.Errorf("%s: code %d, error %q", line, code, errOut)
		}
	}
}
