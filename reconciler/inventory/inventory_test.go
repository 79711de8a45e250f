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
// nothing is lost, nothing stands twice, order does not matter, and a set
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
		"seven of thirty are too many":                 {total: 30, removed: 7, wantErr: `revision main@sha1:9f2c4d1e would remove 7 of 30 objects (Deployment/a/app0, Deployment/a/app1, Deployment/a/app2 and 4 more): nothing was applied; commit them again, or allow it with the annotation kustomize.flotilla.io/allow-prune: "main@sha1:9f2c4d1e"`},
		"six of twenty-nine are more than a fifth":     {total: 29, removed: 6, wantErr: `revision main@sha1:9f2c4d1e would remove 6 of 29 objects (Deployment/a/app0, Deployment/a/app1, Deployment/a/app2 and 3 more): nothing was applied; commit them again, or allow it with the annotation kustomize.flotilla.io/allow-prune: "main@sha1:9f2c4d1e"`},
		"everything is too much, however little it is": {total: 2, removed: 2, wantErr: `revision main@sha1:9f2c4d1e would remove 2 of 2 objects (Deployment/a/app0, Deployment/a/app1): nothing was applied; commit them again, or allow it with the annotation kustomize.flotilla.io/allow-prune: "main@sha1:9f2c4d1e"`},
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

// TestAMisspeltAllowance: a word that lets nothing go, and is like a name of what stays, is told.
func TestAMisspeltAllowance(t *testing.T) {
	const revision = "main@sha1:9f2c4d1e0b7a"
	loss := func(text string) inventory.Loss { return inventory.Loss{ID: entry(text, "v1").ID, Precious: true} }
	shop, shops := loss("_shop__Namespace"), loss("_shops__Namespace")
	for name, tc := range map[string]struct {
		trailer string
		losses  []inventory.Loss
		want    string // what the refusal says of it
	}{
		"a letter is missing":         {"namespace/shps", []inventory.Loss{shops}, "; allowed is namespace/shps (did you mean namespace/shops?)"},
		"another kind":                {"persistentvolumeclaim/shop", []inventory.Loss{shop}, ""},
		"something else":              {"namespace/kitchen", []inventory.Loss{shop}, ""},
		"a name that lets another go": {"namespace/shop", []inventory.Loss{shop, shops}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := inventory.DefaultBrake().Check(9, tc.losses, inventory.AllowanceOf("", tc.trailer, revision), revision)
			if err == nil {
				t.Fatal("it goes")
			}
			_, got, _ := strings.Cut(err.Error(), "allow-prune: ")
			_, got, found := strings.Cut(got, "; ")
			if found {
				got = "; " + got
			}
			if got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

// TestWhatLiftsTheBrake: a revision, or "true", lifts it for what is plain, and names for what they
// name, whatever stands beside them.
func TestWhatLiftsTheBrake(t *testing.T) {
	const revision = "main@sha1:9f2c4d1e0b7a"
	plain := inventory.Loss{ID: entry("shop_web_apps_Deployment", "v1").ID}
	space := inventory.Loss{ID: entry("_shop__Namespace", "v1").ID, Within: 82, Precious: true}
	claim := inventory.Loss{ID: entry("shop_data__PersistentVolumeClaim", "v1").ID, Precious: true}
	cases := map[string]struct {
		annotation, trailer string
		losses              []inventory.Loss
		want                string // what would let it go; empty: it goes
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
		"what is precious, by name":    {annotation: "true, namespace/shop", losses: []inventory.Loss{plain, space}},
		"one of two that are precious": {annotation: "true,namespace/shop", losses: []inventory.Loss{plain, space, claim}, want: revision + ", namespace/shop, persistentvolumeclaim/shop/data"},
		"a trailer that names":         {trailer: "namespace/shop, PersistentVolumeClaim/shop/data , deployment/shop/web", losses: []inventory.Loss{plain, space, claim}},
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
		})
	}
}

// TestWhatGoesAlong: what goes with an object counts, and the worst is named first.
func TestWhatGoesAlong(t *testing.T) {
	const revision = "main@sha1:9f2c4d1e"
	of := func(id string, within int, precious bool) inventory.Loss {
		return inventory.Loss{ID: entry(id, "v1").ID, Within: within, Precious: precious}
	}
	for name, tc := range map[string]struct {
		losses  []inventory.Loss
		wantErr string
	}{
		"few, with little": {[]inventory.Loss{of("apps_web_kustomize.toolkit.fluxcd.io_Kustomization", 3, false)}, ""},
		"few, with much": {
			[]inventory.Loss{of("shop_web_apps_Deployment", 0, false), of("apps_web_kustomize.toolkit.fluxcd.io_Kustomization", 12, false)},
			`revision main@sha1:9f2c4d1e would remove 2 of 20 objects (Kustomization/apps/web with 12 objects, Deployment/shop/web): nothing was applied; commit them again, or allow it with the annotation kustomize.flotilla.io/allow-prune: "main@sha1:9f2c4d1e"`,
		},
		"one that is precious": {
			[]inventory.Loss{of("shop_web_apps_Deployment", 0, false), of("_shop__Namespace", 1, true)},
			`revision main@sha1:9f2c4d1e would remove 2 of 20 objects (Namespace/shop with 1 object, Deployment/shop/web): nothing was applied; commit them again, or allow it with the annotation kustomize.flotilla.io/allow-prune: "namespace/shop"`,
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
	web := []inventory.Loss{{ID: entry("shop_web_apps_Deployment", "v1").ID}}
	f.Fuzz(func(t *testing.T, annotation, trailer, revision string) {
		allowed := inventory.DefaultBrake().Check(1, web, inventory.AllowanceOf(annotation, trailer, revision), revision) == nil
		named := func(word string) bool { return strings.EqualFold(strings.TrimSpace(word), "Deployment/shop/web") }
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
	child.Runs = true
	const want = "revision main would remove 1 of 40 objects (Kustomization/flux-system/staging with 3 objects, workloads among them): nothing was applied; " +
		`commit it again, or allow it with the annotation kustomize.flotilla.io/allow-prune: "main"`
	if err := inventory.DefaultBrake().Check(40, []inventory.Loss{child}, inventory.Allowance{}, "main"); err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	if err := inventory.DefaultBrake().Check(40, []inventory.Loss{child}, inventory.AllowanceOf("", "kustomization/flux-system/staging", "main"), "main"); err != nil {
		t.Errorf("although it is named: %v", err)
	}
}

// TestTheLastWorkload: a small application that loses it is gone, whatever else of it stays.
func TestTheLastWorkload(t *testing.T) {
	const web, worker, config, job = "shop_web_apps_Deployment", "shop_worker_apps_StatefulSet", "shop_web__ConfigMap", "shop_once_batch_Job"
	cases := map[string]struct {
		removed, stays string
		want           string // what is refused; empty for nothing
	}{
		"the only one":         {config + " " + web, config + "x", "Deployment/shop/web, the last workload, ConfigMap/shop/web"},
		"another one stays":    {web, worker, ""},
		"both of two":          {web + " " + worker, config, "Deployment/shop/web, the last workload, StatefulSet/shop/worker, the last workload"},
		"there was none":       {config, config + "x", ""},
		"a Job counts":         {web, job, ""},
		"a Pod counts":         {"shop_web__Pod", config, "Pod/shop/web, the last workload"},
		"a history is no copy": {"shop_web-1_apps_ControllerRevision", config, ""},
		"what is named may go": {"shop_named_apps_Deployment", config, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var losses []inventory.Loss
			for _, text := range strings.Fields(tc.removed) {
				losses = append(losses, inventory.Loss{ID: entry(text, "v1").ID})
			}
			inventory.MarkLast(losses, []inventory.Entry{entry(tc.stays, "v1")})
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
