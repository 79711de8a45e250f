package inventory_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flotilla-io/flotilla/policies/interpreter/running"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

func entry(text, version string) inventory.Entry {
	parts := strings.Split(text, "_")
	return inventory.Entry{
		ID:      inventory.ID{Namespace: parts[0], Name: parts[1], GroupKind: schema.GroupKind{Group: parts[2], Kind: parts[3]}},
		Version: version,
	}
}

func entries(texts ...string) []inventory.Entry {
	var out []inventory.Entry
	for _, text := range texts {
		out = append(out, entry(text, "v1"))
	}
	return out
}

func object(apiVersion, kind, namespace, name string) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{}
	obj.SetAPIVersion(apiVersion)
	obj.SetKind(kind)
	obj.SetNamespace(namespace)
	obj.SetName(name)
	return obj
}

func TestCompare(t *testing.T) {
	cases := map[string]struct {
		owned, desired []inventory.Entry
		want           inventory.Diff
	}{
		"nothing owned: everything is added, sorted": {
			desired: entries("shop_web_apps_Deployment", "shop_web__Service"),
			want:    inventory.Diff{Added: entries("shop_web__Service", "shop_web_apps_Deployment")},
		},
		"the same set: nothing is added or removed": {
			owned:   entries("shop_web_apps_Deployment", "_shop__Namespace"),
			desired: entries("_shop__Namespace", "shop_web_apps_Deployment"),
			want:    inventory.Diff{Kept: entries("_shop__Namespace", "shop_web_apps_Deployment")},
		},
		"one of each": {
			owned:   entries("shop_old__Service", "shop_web_apps_Deployment"),
			desired: entries("shop_web_apps_Deployment", "shop_new__Service"),
			want: inventory.Diff{
				Added: entries("shop_new__Service"), Kept: entries("shop_web_apps_Deployment"), Removed: entries("shop_old__Service"),
			},
		},
		"a new version of a kind is the same object": {
			owned:   []inventory.Entry{entry("shop_web_autoscaling_HorizontalPodAutoscaler", "v1")},
			desired: []inventory.Entry{entry("shop_web_autoscaling_HorizontalPodAutoscaler", "v2")},
			want:    inventory.Diff{Kept: []inventory.Entry{entry("shop_web_autoscaling_HorizontalPodAutoscaler", "v2")}},
		},
		"another group is another object": {
			owned:   entries("shop_web_extensions_Ingress"),
			desired: entries("shop_web_networking.k8s.io_Ingress"),
			want:    inventory.Diff{Added: entries("shop_web_networking.k8s.io_Ingress"), Removed: entries("shop_web_extensions_Ingress")},
		},
		"an empty revision removes all": {
			owned: entries("shop_web_apps_Deployment"),
			want:  inventory.Diff{Removed: entries("shop_web_apps_Deployment")},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, inventory.Compare(tc.owned, tc.desired)); diff != "" {
				t.Errorf("Compare (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOf(t *testing.T) {
	web := object("apps/v1", "Deployment", "shop", "web")
	cases := map[string]struct {
		objects []*unstructured.Unstructured
		want    []inventory.Entry
		wantErr string
	}{
		"sorted, with the version applied": {
			objects: []*unstructured.Unstructured{web, object("v1", "Namespace", "", "shop")},
			want:    entries("_shop__Namespace", "shop_web_apps_Deployment"),
		},
		"the same object twice": {
			objects: []*unstructured.Unstructured{web, object("v1", "Namespace", "", "shop"), web},
			wantErr: "Deployment/shop/web stands twice in this revision: remove one of them",
		},
		"the same object in two versions of its kind": {
			objects: []*unstructured.Unstructured{object("autoscaling/v1", "HorizontalPodAutoscaler", "a", "b"), object("autoscaling/v2", "HorizontalPodAutoscaler", "a", "b")},
			wantErr: "HorizontalPodAutoscaler/a/b stands twice in this revision: remove one of them",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := inventory.Of(tc.objects)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("Of (-want +got):\n%s", diff)
			}
			checkError(t, err, tc.wantErr)
		})
	}
}

func checkError(t *testing.T, err error, want string) {
	t.Helper()
	got := ""
	if err != nil {
		got = err.Error()
	}
	if got != want {
		t.Errorf("error = %q, want %q", got, want)
	}
}

func TestRecordIsReadBack(t *testing.T) {
	want := []inventory.Entry{
		entry("_shop__Namespace", "v1"),
		{ID: inventory.ID{Name: "system:reader", GroupKind: schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}}, Version: "v1"},
		entry("shop_web_apps_Deployment", "v1"),
	}
	recorded := inventory.Record(want)
	if diff := cmp.Diff("_system__reader_rbac.authorization.k8s.io_ClusterRole", recorded.Entries[1].ID); diff != "" {
		t.Errorf("recorded form (-want +got):\n%s", diff)
	}
	got, err := inventory.Read(recorded)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("read back (-want +got):\n%s", diff)
	}
	recorded.Entries[0].ID = "nonsense"
	if _, err := inventory.Read(recorded); err == nil || !strings.Contains(err.Error(), `inventory entry "nonsense"`) {
		t.Errorf("error = %v, want one that names the entry", err)
	}
}

// TestComparePropertiesHold checks on random sets what must hold for all:
// nothing is lost, nothing is listed twice, order does not matter, and a set
// compared with itself is unchanged.
func TestComparePropertiesHold(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		owned, desired := subset(random), subset(random)
		diff := inventory.Compare(owned, desired)
		if got, want := len(diff.Added)+len(diff.Kept), len(desired); got != want {
			t.Fatalf("added and kept are %d, the revision has %d", got, want)
		}
		if got, want := len(diff.Removed)+len(diff.Kept), len(owned); got != want {
			t.Fatalf("removed and kept are %d, %d are owned", got, want)
		}
		random.Shuffle(len(owned), func(i, j int) { owned[i], owned[j] = owned[j], owned[i] })
		random.Shuffle(len(desired), func(i, j int) { desired[i], desired[j] = desired[j], desired[i] })
		if d := cmp.Diff(diff, inventory.Compare(owned, desired)); d != "" {
			t.Fatalf("order changes the outcome:\n%s", d)
		}
		union := inventory.Union(owned, desired)
		if again := inventory.Compare(union, union); len(again.Added)+len(again.Removed) != 0 || len(again.Kept) != len(union) {
			t.Fatalf("a set differs from itself: %+v", again)
		}
		if left := inventory.Compare(union, desired); len(left.Added) != 0 || len(left.Removed) != len(diff.Removed) {
			t.Fatalf("the union lacks something: %+v", left)
		}
	}
}

func subset(random *rand.Rand) []inventory.Entry {
	var out []inventory.Entry
	for i := range 12 {
		if random.IntN(2) == 0 {
			out = append(out, entry(fmt.Sprintf("ns%d_app%d_apps_Deployment", i%3, i), "v1"))
		}
	}
	return out
}

func TestBrake(t *testing.T) {
	const revision = "main@sha1:9f2c4d1e"
	cases := map[string]struct {
		total, removed int
		wantErr        string
	}{
		"nothing goes":                                 {total: 10},
		"an empty inventory has nothing to lose":       {},
		"five may always go":                           {total: 6, removed: 5},
		"six of thirty are a fifth, no more":           {total: 30, removed: 6},
		"seven of thirty are too many":                 {total: 30, removed: 7, wantErr: `revision main@sha1:9f2c4d1e would remove 7 of 30 objects (Deployment/a/app0, Deployment/a/app1, Deployment/a/app2 and 4 more): nothing was applied; commit them again, or allow it with the annotation kustomize.flotilla.io/allow-prune: "main@sha1:9f2c4d1e", or in a commit by the trailer Flotilla-Allow-Delete: deployment/a/app6, deployment/a/app5, deployment/a/app4, deployment/a/app3, deployment/a/app2, deployment/a/app1, deployment/a/app0`},
		"six of twenty-nine are more than a fifth":     {total: 29, removed: 6, wantErr: `revision main@sha1:9f2c4d1e would remove 6 of 29 objects (Deployment/a/app0, Deployment/a/app1, Deployment/a/app2 and 3 more): nothing was applied; commit them again, or allow it with the annotation kustomize.flotilla.io/allow-prune: "main@sha1:9f2c4d1e", or in a commit by the trailer Flotilla-Allow-Delete: deployment/a/app5, deployment/a/app4, deployment/a/app3, deployment/a/app2, deployment/a/app1, deployment/a/app0`},
		"everything is too much, however little it is": {total: 2, removed: 2, wantErr: `revision main@sha1:9f2c4d1e would remove 2 of 2 objects (Deployment/a/app0, Deployment/a/app1): nothing was applied; commit them again, or allow it with the annotation kustomize.flotilla.io/allow-prune: "main@sha1:9f2c4d1e", or in a commit by the trailer Flotilla-Allow-Delete: deployment/a/app1, deployment/a/app0`},
		"more than anybody would name":                 {total: 40, removed: 9, wantErr: `revision main@sha1:9f2c4d1e would remove 9 of 40 objects (Deployment/a/app0, Deployment/a/app1, Deployment/a/app2 and 6 more): nothing was applied; commit them again, or allow it with the annotation kustomize.flotilla.io/allow-prune: "main@sha1:9f2c4d1e"`},
		"a hundred of a thousand are below the share":  {total: 1000, removed: 100},
		"two hundred of a thousand are the last to go": {total: 1000, removed: 200},
		"the last but one of a small set may still go": {total: 3, removed: 2},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var removed []inventory.Loss
			for i := range tc.removed {
				removed = append(removed, inventory.Loss{ID: entry(fmt.Sprintf("a_app%d_apps_Deployment", tc.removed-1-i), "v1").ID})
			}
			err := inventory.DefaultBrake().Check(tc.total, removed, inventory.Allowance{}, revision)
			checkError(t, err, tc.wantErr)
			var refusal *inventory.Refusal
			if tc.wantErr != "" && !errors.As(err, &refusal) {
				t.Errorf("error is a %T, want a *Refusal", err)
			}
		})
	}
}

// TestAMisspeltAllowance: a word that allows nothing, and resembles the name of a refused object, is reported.
func TestAMisspeltAllowance(t *testing.T) {
	const revision = "main@sha1:9f2c4d1e0b7a"
	loss := func(text string) inventory.Loss { return inventory.Loss{ID: entry(text, "v1").ID, Precious: true} }
	shop, shops := loss("_shop__Namespace"), loss("_shops__Namespace")
	for name, tc := range map[string]struct {
		trailer string
		losses  []inventory.Loss
		want    string // what the refusal says of it
	}{
		"a letter is missing":           {"namespace/shps", []inventory.Loss{shops}, "not allowed by namespace/shps (did you mean namespace/shops?); "},
		"a letter, beside a group":      {"namespace.core/shps", []inventory.Loss{shops}, "not allowed by namespace.core/shps (did you mean namespace/shops?); "},
		"another group":                 {"namespace.apps/shop", []inventory.Loss{shop}, "not allowed by namespace.apps/shop (did you mean namespace/shop?); "},
		"a letter, beside a short name": {"ns/shps", []inventory.Loss{shops}, "not allowed by namespace/shps (did you mean namespace/shops?); "},
		"another kind":                  {"persistentvolumeclaim/shop", []inventory.Loss{shop}, ""},
		"something else":                {"namespace/kitchen", []inventory.Loss{shop}, ""},
		"a name that lets another go":   {"namespace/shop", []inventory.Loss{shop, shops}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := inventory.DefaultBrake().Check(9, tc.losses, inventory.AllowanceOf("", tc.trailer, revision), revision)
			if err == nil {
				t.Fatal("it goes")
			}
			_, got, _ := strings.Cut(err.Error(), "nothing was applied; ")
			if got, _, _ = strings.Cut(got, "commit "); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

// TestWhatLiftsTheBrake: a revision, or "true", lifts it for objects that are not precious, and names for the objects
// that they name, whatever else the annotation has.
func TestWhatLiftsTheBrake(t *testing.T) {
	const revision = "main@sha1:9f2c4d1e0b7a"
	plain := inventory.Loss{ID: entry("shop_web_apps_Deployment", "v1").ID}
	space := inventory.Loss{ID: entry("_shop__Namespace", "v1").ID, Within: 82, Precious: true}
	claim := inventory.Loss{ID: entry("shop_data__PersistentVolumeClaim", "v1").ID, Precious: true}
	cases := map[string]struct {
		annotation, trailer string
		losses              []inventory.Loss
		want                string // what would allow it; empty if it is allowed
	}{
		"no annotation":                {losses: []inventory.Loss{plain}, want: revision},
		"always":                       {annotation: "true", losses: []inventory.Loss{plain}},
		"the revision":                 {annotation: revision, losses: []inventory.Loss{plain}},
		"its commit":                   {annotation: "9f2c4d1e0b7a", losses: []inventory.Loss{plain}},
		"its commit, abbreviated":      {annotation: "9f2c4d1", losses: []inventory.Loss{plain}},
		"too short an abbreviation":    {annotation: "9f2c4d", losses: []inventory.Loss{plain}, want: revision},
		"another revision":             {annotation: "main@sha1:aaaaaaaaaaaa", losses: []inventory.Loss{plain}, want: revision},
		"the branch alone":             {annotation: "main", losses: []inventory.Loss{plain}, want: revision},
		"anything else":                {annotation: "yes", losses: []inventory.Loss{plain}, want: revision},
		"its name":                     {annotation: "Deployment/shop/web", losses: []inventory.Loss{plain}},
		"what is precious, always":     {annotation: "true", losses: []inventory.Loss{plain, space}, want: revision + ", namespace/shop"},
		"its namespace, which goes":    {trailer: "namespace/shop", losses: []inventory.Loss{plain, space}},
		"its namespace, which stays":   {trailer: "namespace/shop", losses: []inventory.Loss{plain}, want: revision},
		"a namespace, and no claim":    {trailer: "namespace/shop", losses: []inventory.Loss{plain, space, claim}, want: "namespace/shop, persistentvolumeclaim/shop/data"},
		"what is precious, by name":    {annotation: "true, namespace/shop", losses: []inventory.Loss{plain, space}},
		"one of two that are precious": {annotation: "true,namespace/shop", losses: []inventory.Loss{plain, space, claim}, want: revision + ", namespace/shop, persistentvolumeclaim/shop/data"},
		"a trailer that names":         {trailer: "namespace/shop, PersistentVolumeClaim/shop/data , deployment/shop/web", losses: []inventory.Loss{plain, space, claim}},
		"kubectl's short names":        {annotation: "ns/shop", trailer: "PVC/shop/data, deployment/shop/web", losses: []inventory.Loss{plain, space, claim}},
		"a trailer that allows all":    {trailer: "true, *, " + revision, losses: []inventory.Loss{plain}, want: revision},
		"a trailer of another name":    {trailer: "namespace/shops", losses: []inventory.Loss{space}, want: "namespace/shop"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := inventory.DefaultBrake().Check(len(tc.losses), tc.losses, inventory.AllowanceOf(tc.annotation, tc.trailer, revision), revision)
			var refusal *inventory.Refusal
			got := ""
			if errors.As(err, &refusal) {
				got = refusal.Allow
			}
			if got != tc.want {
				t.Errorf("it would be let go by %q, want %q: %v", got, tc.want, err)
			}
			if tc.want == "" {
				return
			}
			if err := inventory.DefaultBrake().Check(len(tc.losses), tc.losses, inventory.AllowanceOf(refusal.Allow, tc.trailer, revision), revision); err != nil {
				t.Errorf("what the refusal says does not help: %v", err)
			}
			_, trailer, _ := strings.Cut(refusal.Trailer, ": ")
			if err := inventory.DefaultBrake().Check(len(tc.losses), tc.losses, inventory.AllowanceOf("", trailer, "main@sha1:of-the-next"), "main@sha1:of-the-next"); err != nil {
				t.Errorf("the trailer %q does not help: %v", refusal.Trailer, err)
			}
		})
	}
}

// TestNamesThatSeveralHave: a name without a group allows the only object that has it in the revision, and none if two
// have it; the refusal then names them with their groups.
func TestNamesThatSeveralHave(t *testing.T) {
	const revision = "main@sha1:9f2c4d1e0b7a"
	native, foreign, core := "shop_web_networking.k8s.io_Ingress", "shop_web_example.com_Ingress", "shop_web__Service"
	for name, tc := range map[string]struct {
		annotation, trailer string
		removed, stays      string
		want                string // the names that the refusal asks for; empty if it is allowed
		says                string // what it reports of those that were given
	}{
		"alone, by the short name":                  {trailer: "ingress/shop/web", removed: native},
		"alone, by its group":                       {trailer: "Ingress.networking.k8s.io/shop/web", removed: native},
		"alone, by its group, in the annotation":    {annotation: "ingress.networking.k8s.io/shop/web", removed: native},
		"alone, by another group":                   {trailer: "ingress.example.com/shop/web", removed: native, want: "ingress/shop/web", says: "not allowed by ingress.example.com/shop/web (did you mean ingress/shop/web?); "},
		"the core group has a name":                 {trailer: "service.core/shop/web", removed: core},
		"no group is another than core":             {trailer: "service./shop/web", removed: core, want: "service/shop/web", says: "not allowed by service./shop/web (did you mean service/shop/web?); "},
		"two, and nothing is named":                 {removed: foreign + " " + native, want: "ingress.example.com/shop/web, ingress.networking.k8s.io/shop/web"},
		"two, by both names":                        {trailer: "ingress.example.com/shop/web, ingress.networking.k8s.io/shop/web", removed: foreign + " " + native},
		"one of two, and the other one stays":       {trailer: "ingress.example.com/shop/web", removed: foreign, stays: native},
		"one of two, by the name that both have":    {trailer: "ingress/shop/web", removed: foreign, stays: native, want: "ingress.example.com/shop/web", says: "not allowed by ingress/shop/web, which kinds of several groups have (did you mean ingress.example.com/shop/web?); "},
		"two, by the name that both have":           {annotation: "ingress/shop/web", removed: foreign + " " + native, want: "ingress.example.com/shop/web, ingress.networking.k8s.io/shop/web", says: "not allowed by ingress/shop/web, which kinds of several groups have (did you mean ingress.example.com/shop/web or ingress.networking.k8s.io/shop/web?); "},
		"two, and one of them by its own":           {trailer: "ingress.example.com/shop/web", removed: foreign + " " + native, want: "ingress.example.com/shop/web, ingress.networking.k8s.io/shop/web"},
		"one of the core group among two":           {trailer: "service/shop/web", removed: core + " shop_web_serving.knative.dev_Service", want: "service.core/shop/web, service.serving.knative.dev/shop/web", says: "not allowed by service/shop/web, which kinds of several groups have (did you mean service.core/shop/web or service.serving.knative.dev/shop/web?); "},
		"another version of a kind is no other one": {trailer: "ingress/shop/web", removed: native, stays: native},
	} {
		t.Run(name, func(t *testing.T) {
			var losses []inventory.Loss
			removed, stays := entries(strings.Fields(tc.removed)...), entries(strings.Fields(tc.stays)...)
			for _, e := range removed {
				losses = append(losses, inventory.Loss{ID: e.ID, Precious: true})
			}
			allowance := func(annotation, trailer string) inventory.Allowance {
				return inventory.AllowanceOf(annotation, trailer, revision).Among(removed, stays)
			}
			err := inventory.DefaultBrake().Check(9, losses, allowance(tc.annotation, tc.trailer), revision)
			var refusal *inventory.Refusal
			if !errors.As(err, &refusal) {
				refusal = &inventory.Refusal{}
			}
			if refusal.Allow != tc.want {
				t.Fatalf("it would be let go by %q, want %q: %v", refusal.Allow, tc.want, err)
			}
			if tc.want == "" {
				return
			}
			_, says, _ := strings.Cut(err.Error(), "nothing was applied; ")
			if says, _, _ = strings.Cut(says, "commit "); says != tc.says {
				t.Errorf("it says %q, want %q", says, tc.says)
			}
			if want := "Flotilla-Allow-Delete: " + tc.want; refusal.Trailer != want {
				t.Errorf("trailer %q, want %q", refusal.Trailer, want)
			}
			for _, may := range []inventory.Allowance{allowance(tc.want, ""), allowance("", tc.want)} {
				if err := inventory.DefaultBrake().Check(9, losses, may, revision); err != nil {
					t.Errorf("what the refusal says does not help: %v", err)
				}
			}
		})
	}
}

// TestWordsAsPeopleWriteThem: what can mean one thing only allows it, and what does not is named with what it may mean.
func TestWordsAsPeopleWriteThem(t *testing.T) {
	const revision = "main@sha1:9f2c4d1e0b7a"
	known := entries("_shop__Namespace", "shop_data__PersistentVolumeClaim", "shop_web_apps_Deployment", "shop_web_networking.k8s.io_NetworkPolicy")
	for name, tc := range map[string]struct {
		trailer string
		says    string // of what was given; empty if all are allowed
		asks    string
	}{
		"as it is proposed":             {trailer: "namespace/shop, persistentvolumeclaim/shop/data, deployment/shop/web, networkpolicy/shop/web"},
		"in short, and in quotes":       {trailer: "`ns/shop`, \"pvc/shop/data\", 'deploy/shop/web', NetworkPolicy/shop/web"},
		"blanks beside slashes":         {trailer: "namespace / shop, pvc/ shop /data, deployment/shop/web, networkpolicy/shop/web"},
		"in the plural":                 {trailer: "namespaces/shop, pvc/shop/data, deployments/shop/web, networkpolicies/shop/web"},
		"in the plural, with the group": {trailer: "namespaces/shop, pvc/shop/data, deployments.apps/shop/web, NetworkPolicies.networking.k8s.io/shop/web"},
		"in the plural, of another group": {trailer: "namespaces/shop, pvc/shop/data, deployments.example.com/shop/web, networkpolicies/shop/web",
			says: "not allowed by deployments.example.com/shop/web (did you mean deployment/shop/web?); ",
			asks: "namespace/shop, persistentvolumeclaim/shop/data, networkpolicy/shop/web, deployment/shop/web"},
		"without its namespace": {trailer: "ns/shop, pvc/data, deploy/web, networkpolicy/shop/web",
			says: "not allowed by deployment/web (did you mean deployment/shop/web?), persistentvolumeclaim/data (did you mean persistentvolumeclaim/shop/data?); ",
			asks: "namespace/shop, networkpolicy/shop/web, persistentvolumeclaim/shop/data, deployment/shop/web"},
		"without a slash": {trailer: "namespace shop, pvc/shop/data, deploy/shop/web, networkpolicy/shop/web",
			says: "not allowed by namespace shop (did you mean namespace/shop?); ",
			asks: "persistentvolumeclaim/shop/data, deployment/shop/web, networkpolicy/shop/web, namespace/shop"},
		"without a comma": {trailer: "namespace/shop pvc/shop/data, deploy/shop/web, networkpolicy/shop/web",
			says: "not allowed by namespace/shop pvc/shop/data (did you mean namespace/shop or persistentvolumeclaim/shop/data?); ",
			asks: "deployment/shop/web, networkpolicy/shop/web, namespace/shop, persistentvolumeclaim/shop/data"},
		"above the last paragraph": {trailer: "!namespace/shop, pvc/shop/data, deploy/shop/web, networkpolicy/shop/web",
			says: "not allowed by namespace/shop (in the message of the commit, but not in its last paragraph, where it counts); ",
			asks: "persistentvolumeclaim/shop/data, deployment/shop/web, networkpolicy/shop/web, namespace/shop"},
		"the same, of a group": {trailer: "!Namespace.core/shop, pvc/shop/data, deploy/shop/web, networkpolicy/shop/web",
			says: "not allowed by namespace/shop (in the message of the commit, but not in its last paragraph, where it counts); ",
			asks: "persistentvolumeclaim/shop/data, deployment/shop/web, networkpolicy/shop/web, namespace/shop"},
		"a pod, which is no pod disruption budget": {trailer: "pod/shop/web, ns/shop, pvc/shop/data, deploy/shop/web",
			says: "", asks: "pod/shop/web, namespace/shop, persistentvolumeclaim/shop/data, deployment/shop/web, networkpolicy/shop/web"},
	} {
		var losses []inventory.Loss
		for _, e := range known {
			losses = append(losses, inventory.Loss{ID: e.ID, Precious: true})
		}
		err := inventory.DefaultBrake().Check(9, losses, inventory.AllowanceOf("", tc.trailer, revision).Among(known), revision)
		refusal := &inventory.Refusal{}
		if errors.As(err, &refusal); (err == nil) != (tc.asks == "") {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil {
			continue
		}
		_, says, _ := strings.Cut(err.Error(), "nothing was applied; ")
		if says, _, _ = strings.Cut(says, "commit "); says != tc.says {
			t.Errorf("%s: it says %q, want %q", name, says, tc.says)
		}
		if got := strings.TrimPrefix(refusal.Trailer, "Flotilla-Allow-Delete: "); got != tc.asks {
			t.Errorf("%s: it asks for %q, want %q", name, got, tc.asks)
		}
	}
}

// TestATrailerKeepsWhatTheCommitBeforeAllows: the new commit replaces that one, whose allowances are still needed.
func TestATrailerKeepsWhatTheCommitBeforeAllows(t *testing.T) {
	const revision = "main@sha1:9f2c4d1e0b7a"
	known := entries("_shop__Namespace", "a_web_networking.k8s.io_Ingress", "a_web_example.com_Ingress")
	for name, tc := range map[string]struct{ trailer, want string }{
		"nothing":                     {"", "namespace/shop"},
		"a policy":                    {"PropagationPolicy/shop/all,cluster/east", "propagationpolicy/shop/all, cluster/east, namespace/shop"},
		"what is no name":             {"true, *", "namespace/shop"},
		"a name that is misspelt":     {"namespace/shp, cluster/east", "cluster/east, namespace/shop"},
		"a name that several have":    {"ingress/a/web, cluster/east", "cluster/east, namespace/shop"},
		"one by its group":            {"namespace.core/kitchen", "namespace.core/kitchen, namespace/shop"},
		"more than people would name": {"a/1, a/2, a/3, a/4, a/5, a/6, a/7, a/8", ""},
	} {
		err := inventory.DefaultBrake().Check(9, []inventory.Loss{{ID: known[0].ID, Precious: true}}, inventory.AllowanceOf("", tc.trailer, revision).Among(known), revision)
		var refusal *inventory.Refusal
		if !errors.As(err, &refusal) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := strings.TrimPrefix(refusal.Trailer, "Flotilla-Allow-Delete: "); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

// TestWordsThatAllowNothing: a word that names no object of any Kustomization of the source is named, and not proposed.
func TestWordsThatAllowNothing(t *testing.T) {
	const revision = "main@sha1:9f2c4d1e0b7a"
	own, others := entries("_shop__Namespace"), entries("flux-system_pay-api_kustomize.toolkit.fluxcd.io_Kustomization", "a_web_networking.k8s.io_Ingress", "a_web_example.com_Ingress")
	for name, tc := range map[string]struct{ trailer, want, unclear string }{
		"what another one has":           {"kustomization/flux-system/pay-api, pvc/pay/ledger", "kustomization/flux-system/pay-api, namespace/shop", "persistentvolumeclaim/pay/ledger (there is no such object, or not any more)"},
		"the same, in the plural":        {"kustomizations.kustomize.toolkit.fluxcd.io/flux-system/pay-api", "kustomizations.kustomize.toolkit.fluxcd.io/flux-system/pay-api, namespace/shop", ""},
		"what several others have":       {"ingress.example.com/a/web", "ingress.example.com/a/web, namespace/shop", ""},
		"what is misspelt":               {"kustomization/flux-system/pay-apj", "namespace/shop", "kustomization/flux-system/pay-apj (there is no such object, or not any more)"},
		"what is misspelt, and like own": {"namespace/shp", "namespace/shop", "namespace/shp (did you mean namespace/shop?)"},
	} {
		may := inventory.AllowanceOf("", tc.trailer, revision).Among(own)
		err := inventory.DefaultBrake().Check(9, []inventory.Loss{{ID: own[0].ID, Precious: true}}, may, revision)
		var refusal *inventory.Refusal
		if !errors.As(err, &refusal) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		refusal.Disclaim(may.Unmeant(others))
		if got := strings.TrimPrefix(refusal.Trailer, "Flotilla-Allow-Delete: "); got != tc.want {
			t.Errorf("%s: it proposes %q, want %q", name, got, tc.want)
		}
		if got := strings.Join(refusal.Unclear, "; "); got != tc.unclear {
			t.Errorf("%s: it says %q, want %q", name, got, tc.unclear)
		}
	}
}

// TestNamesThatFitNoTrailer: no trailer is proposed that would be parsed as something else.
func TestNamesThatFitNoTrailer(t *testing.T) {
	for name, tc := range map[string]struct {
		names []string
		want  string
	}{
		"none":                    {},
		"one":                     {[]string{"namespace/shop"}, "Flotilla-Allow-Delete: namespace/shop"},
		"two":                     {[]string{"a/b", "c.d/e/f"}, "Flotilla-Allow-Delete: a/b, c.d/e/f"},
		"a role of Kubernetes":    {[]string{"clusterrole/system:web"}, "Flotilla-Allow-Delete: clusterrole/system:web"},
		"a comma":                 {[]string{"clusterrole/a,b"}, ""},
		"what a terminal obeys":   {[]string{"clusterrole/a\x1b[2J"}, ""},
		"blanks at the end":       {[]string{"clusterrole/a "}, ""},
		"more than people write ": {strings.Fields("a b c d e f g h i"), ""},
	} {
		if got := (inventory.Allowance{}).Trailer(tc.names); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

// TestWhatGoesAlong: what is deleted along with an object counts, and the worst is named first.
func TestWhatGoesAlong(t *testing.T) {
	const revision = "main@sha1:9f2c4d1e"
	of := func(id string, within int, precious bool) inventory.Loss {
		return inventory.Loss{ID: entry(id, "v1").ID, Within: within, Precious: precious}
	}
	from := func(l inventory.Loss, clusters int) inventory.Loss {
		l.Clusters = clusters
		return l
	}
	claims := func(going, kept int) inventory.Loss {
		return inventory.Loss{ID: entry("_shop__Namespace", "v1").ID, Within: 9, Precious: true, Claims: going, Kept: kept}
	}
	const atOnce = "a Namespace that is allowed by its name goes at once with what runs in it, before a replacement is up: let that come, and be ready, by a commit before; "
	for name, tc := range map[string]struct {
		losses  []inventory.Loss
		wantErr string
	}{
		"few, with little": {[]inventory.Loss{of("apps_web_kustomize.toolkit.fluxcd.io_Kustomization", 3, false)}, ""},
		"few, with much": {
			[]inventory.Loss{of("shop_web_apps_Deployment", 0, false), of("apps_web_kustomize.toolkit.fluxcd.io_Kustomization", 12, false)},
			`revision main@sha1:9f2c4d1e would remove 2 of 20 objects (Kustomization/apps/web with 12 objects, Deployment/shop/web): nothing was applied; commit them again, or allow it with the annotation kustomize.flotilla.io/allow-prune: "main@sha1:9f2c4d1e", or in a commit by the trailer Flotilla-Allow-Delete: deployment/shop/web, kustomization/apps/web`,
		},
		"it goes from clusters, too": {
			[]inventory.Loss{from(of("_shop__Namespace", 1, true), 1), from(of("_bar__Namespace", 0, true), 3)},
			`revision main@sha1:9f2c4d1e would remove 2 of 20 objects (Namespace/shop with 1 object, in 1 cluster, Namespace/bar in 3 clusters): nothing was applied; commit them again, or allow it with the annotation kustomize.flotilla.io/allow-prune: "namespace/shop, namespace/bar", or in a commit by the trailer Flotilla-Allow-Delete: namespace/shop, namespace/bar`,
		},
		"claims of others, of which clusters keep none": {
			[]inventory.Loss{claims(2, 0)},
			`revision main@sha1:9f2c4d1e would remove 1 of 20 objects (Namespace/shop with 9 objects: 2 PersistentVolumeClaims with data): nothing was applied; commit it again, or allow it with the annotation kustomize.flotilla.io/allow-prune: "namespace/shop", or in a commit by the trailer Flotilla-Allow-Delete: namespace/shop`,
		},
		"claims of others, of which clusters keep one": {
			[]inventory.Loss{claims(1, 1)},
			`revision main@sha1:9f2c4d1e would remove 1 of 20 objects (Namespace/shop with 9 objects: 1 PersistentVolumeClaim with data, 1 PersistentVolumeClaim (goes here; stays in clusters, as its policy preserves it)): nothing was applied; commit it again, or allow it with the annotation kustomize.flotilla.io/allow-prune: "namespace/shop", or in a commit by the trailer Flotilla-Allow-Delete: namespace/shop`,
		},
		"claims of others, of which clusters keep all": {
			[]inventory.Loss{claims(0, 2)},
			`revision main@sha1:9f2c4d1e would remove 1 of 20 objects (Namespace/shop with 9 objects: 2 PersistentVolumeClaims (go here; stay in clusters, as their policies preserve them)): nothing was applied; commit it again, or allow it with the annotation kustomize.flotilla.io/allow-prune: "namespace/shop", or in a commit by the trailer Flotilla-Allow-Delete: namespace/shop`,
		},
		"one in which something of others runs": {
			[]inventory.Loss{{ID: entry("_shop__Namespace", "v1").ID, Within: 2, Precious: true, Hosts: true}},
			`revision main@sha1:9f2c4d1e would remove 1 of 20 objects (Namespace/shop with 2 objects): nothing was applied; ` + atOnce + `commit it again, or allow it with the annotation kustomize.flotilla.io/allow-prune: "namespace/shop", or in a commit by the trailer Flotilla-Allow-Delete: namespace/shop`,
		},
		"one that is precious": {
			[]inventory.Loss{of("shop_web_apps_Deployment", 0, false), of("_shop__Namespace", 1, true)},
			`revision main@sha1:9f2c4d1e would remove 2 of 20 objects (Namespace/shop with 1 object, Deployment/shop/web): nothing was applied; ` + atOnce + `commit them again, or allow it with the annotation kustomize.flotilla.io/allow-prune: "namespace/shop", or in a commit by the trailer Flotilla-Allow-Delete: namespace/shop`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			checkError(t, inventory.DefaultBrake().Check(20, tc.losses, inventory.Allowance{}, revision), tc.wantErr)
		})
	}
}

func TestSort(t *testing.T) {
	objects := []*unstructured.Unstructured{
		object("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "", "guard"),
		object("apps/v1", "Deployment", "shop", "web"),
		object("v1", "ConfigMap", "shop", "web"),
		object("policy.karmada.io/v1alpha1", "PropagationPolicy", "shop", "web"),
		object("policy.karmada.io/v1alpha1", "ClusterOverridePolicy", "", "images"),
		object("v1", "Namespace", "", "shop"),
		object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "widgets.example.com"),
		object("example.com/v1", "Widget", "shop", "a"),
	}
	want := []string{
		"CustomResourceDefinition/widgets.example.com", "Namespace/shop", "ClusterOverridePolicy/images", "PropagationPolicy/shop/web",
		"ConfigMap/shop/web", "Deployment/shop/web", "Widget/shop/a", "ValidatingWebhookConfiguration/guard",
	}
	inventory.Sort(objects)
	var got []string
	for _, obj := range objects {
		got = append(got, inventory.Describe(inventory.IDOf(obj)))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("order of apply (-want +got):\n%s", diff)
	}

	list, err := inventory.Of(objects)
	if err != nil {
		t.Fatal(err)
	}
	inventory.SortForRemoval(list)
	got = nil
	for i := range list {
		got = append(got, inventory.Describe(list[len(list)-1-i].ID))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("order of removal, reversed (-want +got):\n%s", diff)
	}
}

func FuzzAllowanceOf(f *testing.F) {
	f.Add("true", "", "main@sha1:9f2c4d1e")
	f.Add("9f2c4d1, x", "y", "sha1:9f2c4d1e")
	f.Add("", "true,*", "")
	f.Add("", "Deployment.apps/shop/web, deployment.core/shop/web", "main@sha1:9f2c4d1e")
	web := []inventory.Loss{{ID: entry("shop_web_apps_Deployment", "v1").ID}}
	f.Fuzz(func(t *testing.T, annotation, trailer, revision string) {
		allowed := inventory.DefaultBrake().Check(1, web, inventory.AllowanceOf(annotation, trailer, revision), revision) == nil
		named := func(word string) bool {
			word = strings.ToLower(strings.TrimSpace(word))
			return word == "deployment/shop/web" || word == "deployment.apps/shop/web"
		}
		lifts := func(word string) bool {
			word = strings.TrimSpace(word)
			return named(word) || word == "true" || word != "" && strings.Contains(revision, word)
		}
		if allowed && !slices.ContainsFunc(strings.Split(annotation, ","), lifts) && !slices.ContainsFunc(strings.Split(trailer, ","), named) {
			t.Errorf("%q and %q allow %q", annotation, trailer, revision)
		}
	})
}

// TestAChildThatRunsSomething: a Kustomization with workloads in it is an application.
func TestAChildThatRunsSomething(t *testing.T) {
	child := inventory.Loss{ID: entry("flux-system_staging_kustomize.toolkit.fluxcd.io_Kustomization", "v1").ID, Within: 3}
	if err := inventory.DefaultBrake().Check(40, []inventory.Loss{child}, inventory.Allowance{}, "main"); err != nil {
		t.Errorf("without workloads: %v", err)
	}
	child.Runs = 2
	const want = "revision main would remove 1 of 40 objects (Kustomization/flux-system/staging with 3 objects: 2 workloads): nothing was applied; " +
		`commit it again, or allow it with the annotation kustomize.flotilla.io/allow-prune: "main", or in a commit by the trailer Flotilla-Allow-Delete: kustomization/flux-system/staging`
	if err := inventory.DefaultBrake().Check(40, []inventory.Loss{child}, inventory.Allowance{}, "main"); err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	if err := inventory.DefaultBrake().Check(40, []inventory.Loss{child}, inventory.AllowanceOf("", "kustomization/flux-system/staging", "main"), "main"); err != nil {
		t.Errorf("although it is named: %v", err)
	}
}

// TestTheLastWorkload: an application without its last workload is gone, whatever else of it stays.
func TestTheLastWorkload(t *testing.T) {
	const web, worker, config, job = "shop_web_apps_Deployment", "shop_worker_apps_StatefulSet", "shop_web__ConfigMap", "shop_once_batch_Job"
	const rollout, widget, monitor = "shop_web_argoproj.io_Rollout", "shop_web_example.com_Widget", "shop_web_monitoring.coreos.com_ServiceMonitor"
	carried := map[string]running.Class{widget: running.Foreign, monitor: running.Foreign, "shop_sized_example.com_Widget": running.Runs}
	cases := map[string]struct {
		removed, stays string
		want           string // what is refused; empty for nothing
	}{
		"the only one":                            {config + " " + web, config + "x", "Deployment/shop/web, the last workload, ConfigMap/shop/web"},
		"another one stays":                       {web, worker, ""},
		"both of two":                             {web + " " + worker, config, "Deployment/shop/web, the last workload, StatefulSet/shop/worker, the last workload"},
		"there was none":                          {config, config + "x", ""},
		"a Job counts":                            {web, job, ""},
		"a Pod counts":                            {"shop_web__Pod", config, "Pod/shop/web, the last workload"},
		"a history is no copy":                    {"shop_web-1_apps_ControllerRevision", config, ""},
		"what is named may go":                    {"shop_named_apps_Deployment", config, ""},
		"kinds of others that run Pods count":     {rollout + " " + config, config + "x", "Rollout/shop/web, the last workload, ConfigMap/shop/web"},
		"one of these stays":                      {web, rollout, ""},
		"what a policy carries counts":            {widget, config + " " + monitor, "Widget/shop/web, the last workload"},
		"what none carries does not":              {"shop_idle_example.com_Widget", config, ""},
		"but it is no more than what is known":    {web + " " + widget, "shop_b_example.com_Widget", "Deployment/shop/web, the last workload, Widget/shop/web"},
		"nor lost where a workload stays":         {widget, web, ""},
		"nor where another of its like stays":     {widget, "shop_b_example.com_Widget", ""},
		"what is known to run nothing stays so":   {monitor, config, ""},
		"what has replicas counts as a workload":  {"shop_sized_example.com_Widget", widget, "Widget/shop/sized, the last workload"},
		"what has replicas is none beside others": {"shop_sized_example.com_Widget", web, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var losses []inventory.Loss
			for _, text := range strings.Fields(tc.removed) {
				losses = append(losses, inventory.Loss{ID: entry(text, "v1").ID, Carried: carried[text]})
			}
			var stays []inventory.Entry
			for text := range strings.FieldsSeq(tc.stays) {
				stays = append(stays, entry(text, "v1"))
			}
			inventory.FlagLast(losses, stays)
			err := inventory.DefaultBrake().Check(5, losses, inventory.AllowanceOf("deployment/shop/named", "", "main"), "main")
			var refusal *inventory.Refusal
			var got []string
			if errors.As(err, &refusal) {
				for _, l := range refusal.Losses {
					got = append(got, l.String())
				}
			}
			if diff := cmp.Diff(tc.want, strings.Join(got, ", ")); diff != "" {
				t.Errorf("refused (-want +got):\n%s", diff)
			}
		})
	}
}

// TestWhatIsPreciousInAChild: the refusal names the data that a Kustomization would delete, and each claim has to be
// named to allow it.
func TestWhatIsPreciousInAChild(t *testing.T) {
	const revision = "main@sha1:9f2c4d1e"
	const child, data, logs = "kustomization/flux-system/ledger", "persistentvolumeclaim/ledger/data", "persistentvolumeclaim/ledger/logs"
	id := func(text string) inventory.ID { return entry(text, "v1").ID }
	space, crd := id("_ledger__Namespace"), id("_books.example.com_apiextensions.k8s.io_CustomResourceDefinition")
	loss := func(within, runs int, precious ...inventory.ID) inventory.Loss {
		return inventory.Loss{ID: id("flux-system_ledger_kustomize.toolkit.fluxcd.io_Kustomization"), Within: within, Precious: true, Runs: runs, Contained: precious}
	}
	keeping := func(l inventory.Loss, preserved ...inventory.ID) inventory.Loss {
		l.Preserved = preserved
		return l
	}
	first, second := id("ledger_data__PersistentVolumeClaim"), id("ledger_logs__PersistentVolumeClaim")
	for name, tc := range map[string]struct {
		loss                inventory.Loss
		annotation, trailer string
		want, allow         string // what is refused, and what would allow it; empty for nothing
		unclear             []string
	}{
		"nothing is named": {
			loss: loss(4, 1, space, first),
			want: "Kustomization/flux-system/ledger with 4 objects: PersistentVolumeClaim/ledger/data with its data, Namespace/ledger, 1 workload", allow: child + ", " + data,
		},
		"clusters keep a claim of two": {
			loss: keeping(loss(2, 0, first, second), first),
			want: "Kustomization/flux-system/ledger with 2 objects: PersistentVolumeClaim/ledger/data (goes here; stays in clusters, as its policy preserves it), PersistentVolumeClaim/ledger/logs with its data", allow: child + ", " + data + ", " + logs,
		},
		"it is a claim that clusters keep": {
			loss: keeping(inventory.Loss{ID: first, Precious: true}, first),
			want: "PersistentVolumeClaim/ledger/data (goes here; stays in clusters, as its policy preserves it)", allow: data,
		},
		"the child is named, and no claim of it": {
			loss: loss(4, 1, space, first), trailer: child,
			want: "Kustomization/flux-system/ledger with 4 objects: PersistentVolumeClaim/ledger/data with its data, Namespace/ledger, 1 workload", allow: child + ", " + data,
		},
		"the revision is allowed, and no claim": {
			loss: loss(1, 0, first), annotation: "true, " + child,
			want: "Kustomization/flux-system/ledger with 1 object: PersistentVolumeClaim/ledger/data with its data", allow: child + ", " + data,
		},
		"one of two claims is named": {
			loss: loss(2, 0, first, second), trailer: child + ", pvc/ledger/data",
			want: "Kustomization/flux-system/ledger with 2 objects: PersistentVolumeClaim/ledger/logs with its data", allow: child + ", " + data + ", " + logs,
		},
		"a claim is misspelt": {
			loss: loss(1, 0, first), trailer: child + ", pvc/ledger/date",
			want: "Kustomization/flux-system/ledger with 1 object: PersistentVolumeClaim/ledger/data with its data", allow: child + ", " + data,
			unclear: []string{"persistentvolumeclaim/ledger/date (did you mean persistentvolumeclaim/ledger/data?)"},
		},
		"much is in it": {
			loss:  loss(40, 12, space, crd, id("_other__Namespace"), first, second),
			want:  "Kustomization/flux-system/ledger with 40 objects: PersistentVolumeClaim/ledger/data with its data, PersistentVolumeClaim/ledger/logs with its data, CustomResourceDefinition/books.example.com with all objects of its kind, 2 more such, 12 workloads",
			allow: child + ", " + data + ", " + logs,
		},
		"all of it is named":             {loss: loss(4, 1, space, first), trailer: child + ", " + data},
		"a namespace goes with its name": {loss: loss(2, 0, space), annotation: child},
	} {
		t.Run(name, func(t *testing.T) {
			err := inventory.DefaultBrake().Check(40, []inventory.Loss{tc.loss}, inventory.AllowanceOf(tc.annotation, tc.trailer, revision), revision)
			refusal := &inventory.Refusal{}
			if err != nil && !errors.As(err, &refusal) {
				t.Fatal(err)
			}
			var got string
			if len(refusal.Losses) == 1 {
				got = refusal.Losses[0].String()
			}
			if got != tc.want || refusal.Allow != tc.allow {
				t.Errorf("refused is %q, allowed by %q; want %q and %q", got, refusal.Allow, tc.want, tc.allow)
			}
			if got := strings.TrimPrefix(refusal.Trailer, "Flotilla-Allow-Delete: "); got != tc.allow {
				t.Errorf("trailer = %q, want %q", got, tc.allow)
			}
			if diff := cmp.Diff(tc.unclear, refusal.Unclear); diff != "" {
				t.Errorf("unclear (-want +got):\n%s", diff)
			}
		})
	}
}
