package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
)

// karmadactl is its commands with the flags that scripts use.
var karmadactl = map[string][]string{
	"explain": {"operation-scope", "cluster"},
	"get": {
		"all-namespaces", "clusters", "operation-scope", "selector", "output", "watch", "watch-only", "ignore-not-found", "show-labels", "label-columns",
	},
	"create":        {"filename", "dry-run", "output", "save-config"},
	"delete":        {"filename", "selector", "all", "force", "grace-period", "wait", "timeout", "dry-run"},
	"edit":          {"filename", "output"},
	"init":          nil,
	"deinit":        nil,
	"addons":        nil,
	"join":          {"cluster-kubeconfig", "cluster-context", "cluster-namespace", "cluster-provider", "cluster-region", "cluster-zones", "dry-run"},
	"unjoin":        {"cluster-kubeconfig", "cluster-context", "cluster-namespace", "wait", "force", "dry-run"},
	"token":         nil,
	"token create":  {"ttl", "groups", "usages", "description", "print-register-command"},
	"token list":    nil,
	"token delete":  nil,
	"register":      {"token", "discovery-token-ca-cert-hash", "discovery-token-unsafe-skip-ca-verification", "cluster-name", "cluster-namespace", "cluster-provider", "cluster-region", "cluster-zones", "enable-cert-rotation", "karmada-agent-image", "karmada-agent-replicas", "cert-expiration-seconds", "proxy-server-address", "dry-run", "discovery-timeout"},
	"unregister":    {"cluster-kubeconfig", "cluster-context", "karmada-config", "agent-name", "wait"},
	"cordon":        {"dry-run"},
	"uncordon":      {"dry-run"},
	"taint":         {"overwrite", "dry-run"},
	"attach":        {"stdin", "tty", "quiet", "container", "operation-scope", "cluster"},
	"logs":          {"follow", "container", "previous", "since", "tail", "timestamps", "cluster"},
	"exec":          {"stdin", "tty", "quiet", "container", "operation-scope", "cluster"},
	"describe":      {"operation-scope", "cluster", "selector", "filename", "show-events"},
	"interpret":     {"filename", "check", "operation", "desired-file", "observed-file", "status-file", "desired-replica", "edit", "show-doc"},
	"apply":         {"filename", "cluster", "all-clusters", "dry-run", "output", "server-side", "prune"},
	"promote":       {"cluster", "cluster-kubeconfig", "cluster-context", "auto-create-policy", "dependencies", "policy-name", "output", "dry-run"},
	"top":           nil,
	"top pods":      {"clusters", "sum", "all-namespaces", "containers", "sort-by", "selector", "field-selector"},
	"top nodes":     {"clusters", "sort-by", "selector"},
	"patch":         {"patch", "patch-file", "type", "dry-run", "subresource"},
	"label":         {"overwrite", "all", "selector", "dry-run"},
	"annotate":      {"overwrite", "all", "selector", "dry-run"},
	"completion":    nil,
	"api-resources": {"operation-scope", "cluster", "namespaced", "api-group", "verbs", "output"},
	"api-versions":  {"operation-scope", "cluster"},
	"version":       nil,
	"options":       nil,
}

var row = regexp.MustCompile("(?m)^\\| `([a-z -]+)` \\| (works|differs|not yet) \\|")

// TestKarmadactl holds the table in docs/cli.md to what there is.
func TestKarmadactl(t *testing.T) {
	docs, err := os.ReadFile("../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(docs), "## For users of karmadactl")
	if !found {
		t.Fatal("docs/cli.md has no such section")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	states := map[string]string{}
	for _, match := range row.FindAllStringSubmatch(section, -1) {
		states[match[1]] = match[2]
	}
	root := newCommand("flotilla")
	root.InitDefaultCompletionCmd("bash")
	want := map[string]string{}
	for name, flags := range karmadactl {
		if strings.Contains(name, " ") {
			checkFlags(t, root, name, flags, states[strings.Fields(name)[0]])
			continue
		}
		want[name] = states[name]
		checkFlags(t, root, name, flags, states[name])
	}
	if diff := cmp.Diff(want, states); diff != "" || len(want) != 32 {
		t.Errorf("%d commands; rows (-want +got):\n%s", len(want), diff)
	}
}

// checkFlags compares a command with what the table says of it.
func checkFlags(t *testing.T, root *cobra.Command, name string, flags []string, state string) {
	t.Helper()
	cmd, rest, err := root.Find(strings.Fields(name))
	there := err == nil && len(rest) == 0 && !cmd.Hidden // a hidden one only says what is there instead
	switch {
	case state == "":
		t.Errorf("%s has no row", name)
	case state == "not yet" && there:
		t.Errorf("%s is there, and the table says not yet", name)
	case state != "not yet" && !there:
		t.Errorf("%s %s, says the table, and it is not there", name, state)
	case there:
		missing := slices.DeleteFunc(slices.Clone(flags), func(flag string) bool { return cmd.Flags().Lookup(flag) != nil })
		if len(missing) > 0 {
			t.Errorf("%s lacks the flags %v", name, missing)
		}
	}
}

// TestEveryCommand has help with an example, and refuses flags that it has not.
func TestEveryCommand(t *testing.T) {
	for _, path := range everyCommand(newCommand("flotilla"), nil) {
		t.Run(strings.Join(path, " "), func(t *testing.T) {
			cmd, _, err := newCommand("flotilla").Find(path)
			if err != nil {
				t.Fatal(err)
			}
			examples := ""
			for at := cmd; at != nil; at = at.Parent() {
				examples += at.Example
			}
			if examples == "" && path[0] != "completion" && path[0] != "help" {
				t.Error("neither it nor what it belongs to has an example")
			}
			if strings.Contains(cmd.Example, "karmadactl") || strings.Contains(strings.ReplaceAll(cmd.Example, "flotilla kubectl", ""), "kubectl ") {
				t.Errorf("its examples call another program:\n%s", cmd.Example)
			}
			if cmd.Short == "" {
				t.Error("nothing says in short what it is for")
			}
			if code, out, _ := runBinary(t, append(slices.Clone(path), "--help")...); code != 0 || !strings.Contains(out, "Usage:") {
				t.Errorf("--help: exit code %d, output:\n%s", code, out)
			}
			code, _, errOut := runBinary(t, append(slices.Clone(path), "--no-such-flag")...)
			if code != 2 || !strings.Contains(errOut, "unknown flag: --no-such-flag") || strings.Count(errOut, "\n") != 1 {
				t.Errorf("an unknown flag: exit code %d, error %q", code, errOut)
			}
		})
	}
}

// everyCommand lists the paths of all commands that read flags.
func everyCommand(cmd *cobra.Command, above []string) [][]string {
	var out [][]string
	for _, sub := range cmd.Commands() {
		if sub.DisableFlagParsing || sub.Hidden {
			continue
		}
		path := append(slices.Clone(above), sub.Name())
		out = append(out, path)
		out = append(out, everyCommand(sub, path)...)
	}
	return out
}
