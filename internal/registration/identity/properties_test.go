package identity_test

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/registration/identity"
)

func TestGive(t *testing.T) {
	c := &clusterv1alpha1.Cluster{}
	c.Labels = map[string]string{"keeps": "this"}
	c.Spec = clusterv1alpha1.ClusterSpec{Provider: "acme", Region: "asia", Zone: "asia-1", Taints: []corev1.Taint{{Key: "edge", Value: "old", Effect: corev1.TaintEffectNoSchedule}}}
	reported := identity.Properties{
		Region: "eu", Labels: map[string]string{"tier": "secret"},
		Taints: []corev1.Taint{{Key: "edge", Value: "new", Effect: corev1.TaintEffectNoSchedule}, {Key: "edge", Effect: corev1.TaintEffectNoExecute}},
	}
	text := reported.String()
	read, err := identity.ParseProperties(text)
	if err != nil {
		t.Fatal(err)
	}
	read.Give(c)
	want := &clusterv1alpha1.Cluster{}
	want.Labels = map[string]string{"keeps": "this", "tier": "secret"}
	want.Spec = clusterv1alpha1.ClusterSpec{Provider: "acme", Region: "eu", Zones: []string{"asia-1"}, Taints: reported.Taints}
	if diff := cmp.Diff(want, c); diff != "" {
		t.Errorf("cluster (-want +got):\n%s", diff)
	}
}

func TestBeyond(t *testing.T) {
	stands := identity.Properties{Region: "eu", Zones: []string{"eu-1", "eu-2"}}
	cases := map[string]struct{ reported, want identity.Properties }{
		"nothing":          {},
		"the same":         {reported: stands},
		"another region":   {reported: identity.Properties{Region: "asia", Zones: stands.Zones}, want: identity.Properties{Region: "asia"}},
		"fewer zones":      {reported: identity.Properties{Zones: []string{"eu-1"}}, want: identity.Properties{Zones: []string{"eu-1"}}},
		"what is not said": {reported: identity.Properties{Provider: "acme", Region: "eu"}, want: identity.Properties{Provider: "acme"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, stands.Beyond(tc.reported, false)); diff != "" {
				t.Errorf("beyond what stands (-want +got):\n%s", diff)
			}
		})
	}
}

// TestPatchesCanBePasted checks that a shell takes the whole patch for one word:
// what an agent reports is in commands that administrators are shown.
func TestPatchesCanBePasted(t *testing.T) {
	for _, region := range []string{"eu-1", "eu'; exit 3; '", "$(exit 3)`exit 3`", "eu\nb", "\u202etxt", "\x00", "\xff", "\U0001F600", "a\"b<&>c"} {
		reported := identity.Properties{Region: region, Zones: []string{region}}
		words, err := exec.CommandContext(t.Context(), "sh", "-c", "printf '%s|' start '"+reported.Patch()+"' end").Output()
		if err != nil {
			t.Fatal(err)
		}
		patch, ok := strings.CutPrefix(string(words), "start|")
		patch, tail := strings.CutSuffix(patch, "|end|")
		if !ok || !tail {
			t.Fatalf("%q: the shell reads %q", region, words)
		}
		if strings.IndexFunc(patch, func(r rune) bool { return r < ' ' || r > '~' }) >= 0 {
			t.Errorf("%q: not all of it is shown: %q", region, patch)
		}
		var got struct{ Spec identity.Properties }
		if err := json.Unmarshal([]byte(patch), &got); err != nil || got.Spec.Region != strings.ToValidUTF8(region, "\ufffd") {
			t.Errorf("%q is read back as %q: %v", region, got.Spec.Region, err)
		}
	}
}
