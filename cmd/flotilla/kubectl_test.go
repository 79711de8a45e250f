package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWhatGoesToKubectl(t *testing.T) {
	cases := map[string]struct{ args, want []string }{
		"a call of kubectl":                   {[]string{"bin/flotilla", "kubectl", "get", "pods"}, []string{"bin/kubectl", "get", "pods"}},
		"kubectl without words":               {[]string{"flotilla", "kubectl"}, []string{"kubectl"}},
		"a word of kubectl that is completed": {[]string{"flotilla", "__complete", "kubectl", "get", ""}, []string{"kubectl", "__complete", "get", ""}},
		"one that is, without descriptions":   {[]string{"flotilla", "__completeNoDesc", "kubectl", ""}, []string{"kubectl", "__completeNoDesc", ""}},
		"one that kubectl has completed":      {[]string{"bin/kubectl_complete-flotilla", "kubectl", "get", ""}, []string{"bin/kubectl", "__complete", "get", ""}},
		"the word kubectl, while it is typed": {[]string{"flotilla", "__complete", "kubectl"}, nil},
		"a word of our own that is completed": {[]string{"flotilla", "__complete", "get", ""}, nil},
		"another call":                        {[]string{"flotilla", "get", "kubectl"}, nil},
		"no words at all":                     {[]string{"flotilla"}, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, ok := kubectlArguments(tc.args)
			if diff := cmp.Diff(tc.want, got); diff != "" || ok != (tc.want != nil) {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestAVerbOfKubectlAlone: verbs that only kubectl has are answered with flotilla kubectl.
func TestAVerbOfKubectlAlone(t *testing.T) {
	for _, verb := range []string{"replace", "scale", "rollout", "config"} {
		code, out, errOut := run(t, "flotilla", verb, "-f", "app.yaml")
		if want := "error: " + verb + " is kubectl's: flotilla kubectl " + verb + "\n"; code != 2 || out != "" || errOut != want {
			t.Errorf("%s: code %d, %q, error %q, want %q", verb, code, out, errOut, want)
		}
	}
}
