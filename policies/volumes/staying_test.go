package volumes_test

import (
	stdcmp "cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/volumes"
)

// saying is a cluster with a condition.
func saying(name, message string) clusterv1alpha1.Cluster {
	c := clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	c.Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionClaimsKept, Status: metav1.ConditionTrue, Message: message}}
	return c
}

func named(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "shop", Name: name}
}

// TestStaying: what a cluster says of claims is read as it was written.
func TestStaying(t *testing.T) {
	text := volumes.Staying([]types.NamespacedName{named("logs"), named("data")})
	if want := "PersistentVolumeClaims stay here with their data, and no Work names them: shop/data, shop/logs"; text != want {
		t.Errorf("%q, want %q", text, want)
	}
	west, east := saying("west", text), saying("east", volumes.Staying([]types.NamespacedName{named("data")}))
	want := map[types.NamespacedName][]string{named("data"): {"east", "west"}, named("logs"): {"west"}}
	if diff := cmp.Diff(want, volumes.ByCluster([]clusterv1alpha1.Cluster{west, east})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	silent := saying("south", text)
	silent.Status.Conditions[0].Status = metav1.ConditionFalse
	for name, tc := range map[string]struct {
		before, after *clusterv1alpha1.Cluster
		want          []types.NamespacedName
	}{
		"one is gone":           {&west, &east, []types.NamespacedName{named("logs")}},
		"one is left":           {&east, &west, []types.NamespacedName{named("logs")}},
		"the cluster joins":     {nil, &east, []types.NamespacedName{named("data")}},
		"the cluster leaves":    {&east, nil, []types.NamespacedName{named("data")}},
		"all is as it was":      {&west, &west, nil},
		"it says so no more":    {&silent, &silent, nil},
		"nothing is said of it": {&clusterv1alpha1.Cluster{}, &clusterv1alpha1.Cluster{}, nil},
	} {
		if diff := cmp.Diff(tc.want, volumes.Turned(tc.before, tc.after), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestStayingHasItsBounds: names that are too many are counted, and the rest is read.
func TestStayingHasItsBounds(t *testing.T) {
	var claims []types.NamespacedName
	for i := range 1000 {
		claims = append(claims, named(fmt.Sprintf("%04d-%s", i, strings.Repeat("x", 100))))
	}
	text := volumes.Staying(claims)
	c := saying("west", text)
	read := volumes.StayingIn(&c)
	if len(text) > 32_768 || len(read) == 0 || !strings.HasSuffix(text, fmt.Sprintf(" and %d more", len(claims)-len(read))) {
		t.Errorf("%d bytes, %d names: …%s", len(text), len(read), text[len(text)-40:])
	}
	if diff := cmp.Diff(claims[:len(read)], read); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestStayingBelievesNames: nothing but names gets from a cluster to where people read.
func TestStayingBelievesNames(t *testing.T) {
	const reported = "PersistentVolumeClaims stay here with their data, and no Work names them: "
	for text, want := range map[string][]types.NamespacedName{
		reported + "shop/data, <b>/x, shop/a b, shop/../x, /x, shop": {named("data")},
		reported + "https://sea.example/x":                           nil,
		"shop/data":                                                  nil,
		"":                                                           nil,
	} {
		c := saying("west", text)
		if diff := cmp.Diff(want, volumes.StayingIn(&c)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}

// TestStayingCountsEachOnce: an agent may name a claim twice, and it stays in one cluster all the same.
func TestStayingCountsEachOnce(t *testing.T) {
	c := saying("west", "PersistentVolumeClaims stay here with their data, and no Work names them: shop/data, shop/logs, shop/data")
	want := map[types.NamespacedName][]string{named("data"): {"west"}, named("logs"): {"west"}}
	if diff := cmp.Diff(want, volumes.ByCluster([]clusterv1alpha1.Cluster{c})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// FuzzStaying: whatever stands in the condition, names are read from it, each once, in order, and what is written of them
// is read as it was.
func FuzzStaying(f *testing.F) {
	f.Add(volumes.Staying([]types.NamespacedName{named("logs"), named("data")}))
	f.Add(volumes.Staying(nil))
	f.Add("PersistentVolumeClaims stay here with their data, and no Work names them: shop/data, shop/a.b and 3 more")
	f.Add("PersistentVolumeClaims stay here with their data, and no Work names them: b/a, a/b, a/b, x, /, a/ , and 1 more")
	f.Fuzz(func(t *testing.T, message string) {
		c := saying("west", message)
		read := volumes.StayingIn(&c)
		if !slices.IsSortedFunc(read, func(a, b types.NamespacedName) int {
			return stdcmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
		}) {
			t.Errorf("%q is read without order: %v", message, read)
		}
		for i, claim := range read {
			if len(validation.IsDNS1123Label(claim.Namespace))+len(validation.IsDNS1123Subdomain(claim.Name)) > 0 || i > 0 && read[i-1] == claim {
				t.Errorf("%q is read as %v", message, read)
			}
		}
		text := volumes.Staying(read)
		again := saying("west", text)
		if got := volumes.StayingIn(&again); len(text) <= 30_000 && !slices.Equal(got, read) {
			t.Errorf("%v is written as %q and read as %v", read, text, got)
		}
	})
}
