package contexts_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/flotilla-io/flotilla/internal/contexts"
)

// kubeconfig writes one with the contexts, of which current is the current one.
func kubeconfig(t *testing.T, current string, names ...string) string {
	t.Helper()
	var content strings.Builder
	content.WriteString("apiVersion: v1\nkind: Config\nclusters: [{name: hub, cluster: {server: 'https://hub.example'}}]\ncurrent-context: " + current + "\n")
	content.WriteString("contexts:\n")
	for _, name := range names {
		fmt.Fprintf(&content, "- {name: %s, context: {cluster: hub}}\n", name)
	}
	path := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(path, []byte(content.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestNoKubeconfig: what is asked for in no file is not said to be missing in one.
func TestNoKubeconfig(t *testing.T) {
	rules := &clientcmd.ClientConfigLoadingRules{Precedence: []string{filepath.Join(t.TempDir(), "gone")}}
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: "nope"})
	_, err := loader.ClientConfig()
	const want = `there is no context "nope": no kubeconfig was found; --kubeconfig or $KUBECONFIG names it`
	if err = contexts.Explain(loader, "nope", err); err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

func TestExplain(t *testing.T) {
	many := make([]string, 0, 12)
	for i := range 12 {
		many = append(many, fmt.Sprintf("c%02d", 11-i))
	}
	cases := map[string]struct {
		asked, current string
		names          []string
		want           string // FILE stands for the path
	}{
		"one that is there":             {"east", "", []string{"east"}, ""},
		"one that is not there":         {"nope", "east", []string{"west", "east"}, `there is no context "nope" in FILE: there are east, west`},
		"there is one other":            {"nope", "", []string{"east"}, `there is no context "nope" in FILE: there is east`},
		"there is no other":             {"nope", "", nil, `there is no context "nope" in FILE, and no other`},
		"there are too many to be read": {"nope", "", many, `there is no context "nope" in FILE: there are c00, c01, c02, c03, c04, c05, c06, c07, c08, c09 and 2 more`},
		"the current one is not there":  {"", "gone", []string{"east"}, `there is no context "gone" in FILE: there is east`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			path := kubeconfig(t, tc.current, tc.names...)
			for how, rules := range map[string]*clientcmd.ClientConfigLoadingRules{
				"by name": {ExplicitPath: path},
				"by list": {Precedence: []string{filepath.Join(t.TempDir(), "none"), path}},
			} {
				loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: tc.asked})
				_, err := loader.ClientConfig()
				got := ""
				if err = contexts.Explain(loader, tc.asked, err); err != nil {
					got = strings.ReplaceAll(err.Error(), path, "FILE")
				}
				if got != tc.want {
					t.Errorf("%s it says\n%s\nwant\n%s", how, got, tc.want)
				}
			}
		})
	}
}

// TestExplainLeavesOthersAlone: what is wrong otherwise is reported as it is.
func TestExplainLeavesOthersAlone(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none")
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(&clientcmd.ClientConfigLoadingRules{ExplicitPath: none}, &clientcmd.ConfigOverrides{CurrentContext: "nope"})
	_, err := loader.ClientConfig()
	if got := contexts.Explain(loader, "nope", err); err == nil || got.Error() != err.Error() {
		t.Errorf("of a file that is not there it says %v, want %v", got, err)
	}
	loader = clientcmd.NewNonInteractiveDeferredLoadingClientConfig(&clientcmd.ClientConfigLoadingRules{ExplicitPath: kubeconfig(t, "east", "east")}, nil)
	other := errors.New("the moon is full")
	if got := contexts.Explain(loader, "east", other); !errors.Is(got, other) {
		t.Errorf("of another error it says %v", got)
	}
}
