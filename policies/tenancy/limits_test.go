package tenancy_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-io/flotilla/policies/tenancy"
)

func TestParseLimits(t *testing.T) {
	with := func(of tenancy.Limit, n int64) tenancy.Limits {
		out := tenancy.DefaultLimits()
		out[of] = n
		return out
	}
	cases := map[string]struct {
		texts map[string]string
		want  tenancy.Limits
		err   string
	}{
		"nothing is the default": {nil, tenancy.DefaultLimits(), ""},
		"a number":               {map[string]string{"objects": "7"}, with(tenancy.Objects, 7), ""},
		"a size":                 {map[string]string{"artifact-size": "2Gi"}, with(tenancy.ArtifactSize, 2<<30), ""},
		"none":                   {map[string]string{"kustomizations": "0"}, with(tenancy.Kustomizations, 0), ""},
		"a name that is none":    {map[string]string{"pods": "7"}, nil, `"pods" is no limit: there are artifact-size, kustomizations, object-size, objects, sources`},
		"less than none":         {map[string]string{"objects": "-1"}, nil, "objects=-1: it is no quantity such as 100 or 1Gi, or 0 for as much as there is"},
		"a part":                 {map[string]string{"objects": "100m"}, nil, "objects=100m: it is no quantity such as 100 or 1Gi, or 0 for as much as there is"},
		"words":                  {map[string]string{"objects": "many"}, nil, "objects=many: it is no quantity such as 100 or 1Gi, or 0 for as much as there is"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := tenancy.ParseLimits(tc.texts)
			text := ""
			if err != nil {
				text = err.Error()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || text != tc.err {
				t.Errorf("error %q, want %q; limits (-want +got):\n%s", text, tc.err, diff)
			}
		})
	}
}

func TestLimits(t *testing.T) {
	rules := tenancy.Rules{PrivilegedNamespaces: []string{"flux-system"}, Limits: tenancy.Limits{tenancy.Objects: 2}}
	const more = "the namespace team would have 3 objects of Kustomizations, and may have 2 (serve --namespace-limits objects=2): remove what is not needed, or ask an administrator for more"
	cases := map[string]struct {
		err  error
		want string
	}{
		"as much as there may be":            {rules.In("team").Check("team", tenancy.Objects, 2), ""},
		"more":                               {rules.In("team").Check("team", tenancy.Objects, 3), more},
		"one takes the place of another":     {rules.In("team").Replace("team", tenancy.Objects, 1, 2, 2), ""},
		"one that is larger does":            {rules.In("team").Replace("team", tenancy.Objects, 0, 1, 2), ""},
		"one that is too large does":         {rules.In("team").Replace("team", tenancy.Objects, 1, 1, 2), more},
		"one that is smaller than too large": {rules.In("team").Replace("team", tenancy.Objects, 5, 3, 2), ""},
		"what is not limited":                {rules.In("team").Check("team", tenancy.Sources, 1<<40), ""},
		"a privileged namespace has no end":  {rules.In("flux-system").Check("flux-system", tenancy.Objects, 3), ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := ""
			if tc.err != nil {
				got = tc.err.Error()
			}
			if got != tc.want {
				t.Errorf("got  %q\nwant %q", got, tc.want)
			}
		})
	}
}
