package forecast_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-io/flotilla/policies/plan"
)

// TestDormant: what a Kustomization has in the files that applies nothing of them for now is told where it changes, as nothing else says
// what it will do later.
func TestDormant(t *testing.T) {
	of := func(spec, configs string, others ...string) files {
		f := files{"root/all.yaml": child("east", spec)}
		if configs != "" {
			f["east/all.yaml"] = configs
		}
		for _, other := range others {
			f[other] = configs
		}
		return f
	}
	const suspended, elsewhere = "suspend: true", "kubeConfig: {secretRef: {name: east}}"
	const broken = "a: b\n"
	for name, tc := range map[string]struct {
		base, head files
		want       []string
	}{
		"suspended, and the same":              {of(suspended, configs("a")), of(suspended, configs("a"), "README.md"), nil},
		"suspended, and it changes":            {of(suspended, configs("a")), of(suspended, configs("b")), []string{"NotFollowed: Kustomization flux/east: it is suspended, and what it applies once it is resumed changes"}},
		"suspended by the change alone":        {of("wait: false", configs("a")), of(suspended, configs("a")), nil},
		"suspended by the change, which hides": {of("wait: false", configs("a")), of(suspended, configs("b")), []string{"NotFollowed: Kustomization flux/east: it is suspended, and what it applies once it is resumed changes"}},
		"it comes suspended":                   {files{"root/all.yaml": configs("r")}, files{"root/all.yaml": configs("r") + child("east", suspended), "east/all.yaml": configs("a")}, []string{"NotFollowed: Kustomization flux/east: it is suspended, and what it applies once it is resumed changes"}},
		"elsewhere, and the same":              {of(elsewhere, configs("a")), of(elsewhere, configs("a"), "README.md"), nil},
		"elsewhere, and it changes":            {of(elsewhere, configs("a")), of(elsewhere, configs("b")), []string{"NotFollowed: Kustomization flux/east: what it applies to a cluster outside of the fleet changes"}},
		"refused as before, and the same":      {of("wait: false", broken), of("wait: false", broken), nil},
		"resumed":                              {of(suspended, configs("a")), of("suspend: false", configs("b")), nil},
	} {
		t.Run(name, func(t *testing.T) {
			out := plans(t, plan.FleetInput{}, root(""), tc.base, tc.head, "")
			var got []string
			for _, risk := range out.Risks {
				got = append(got, risk.Reason+": "+risk.Message)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("risks (-want +got):\n%s", diff)
			}
		})
	}
}
