package wording_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/situation/wording"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

func TestOneOfSeveral(t *testing.T) {
	web := inventory.ID{GroupKind: schema.GroupKind{Group: "apps", Kind: "Deployment"}, Namespace: "shop", Name: "web"}
	role := inventory.ID{GroupKind: schema.GroupKind{Kind: "ClusterRole"}, Name: "reader"}
	for name, tc := range map[string]struct{ got, want string }{
		"an object in a namespace":   {wording.Title(web) + "; " + wording.Explains(web), "Deployment shop/web; flotilla explain deployment/web -n shop"},
		"an object in none":          {wording.Title(role) + "; " + wording.Explains(role), "ClusterRole reader; flotilla explain clusterrole/reader"},
		"as many names as are shown": {wording.Some([]string{"c", "a", "b"}), "a, b, c"},
		"more than that":             {wording.Some([]string{"d", "c", "a", "b"}), "a, b, c …"},
		"nothing beside the first":   {wording.Besides([]inventory.ID{web}), ""},
		"one beside it":              {wording.Besides([]inventory.ID{web, role}), "; the same of 1 more: ClusterRole reader"},
		"many beside it":             {wording.Besides([]inventory.ID{web, role, web, role}), "; the same of 3 more: ClusterRole reader, Deployment shop/web …"},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.got); diff != "" {
				t.Errorf("text (-want +got):\n%s", diff)
			}
		})
	}
}
