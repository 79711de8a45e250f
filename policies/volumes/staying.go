package volumes

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
)

const (
	// staying is the prefix of the message that lists the claims that stay in a Cluster.
	staying = "PersistentVolumeClaims stay here with their data, and no Work names them: "
	// mostNames is how many bytes of names are listed; a condition's message may have 32,768.
	mostNames = 30_000
)

// Staying returns the message about claims that stay in a Cluster although no Work names them: as many as fit, by
// name. It is the text of the Cluster's condition ClaimsKept, which the control plane or the agent of the cluster writes;
// StayingIn reads it.
func Staying(claims []types.NamespacedName) string {
	claims = inOrder(slices.Clone(claims))
	var out strings.Builder
	out.WriteString(staying)
	for i, c := range claims {
		if out.Len()+len(c.String()) > mostNames {
			fmt.Fprintf(&out, " and %d more", len(claims)-i)
			break
		}
		if i > 0 {
			out.WriteString(", ")
		}
		out.WriteString(c.String())
	}
	return out.String()
}

// inOrder sorts claims by name, without duplicates.
func inOrder(claims []types.NamespacedName) []types.NamespacedName {
	slices.SortFunc(claims, byName)
	return slices.Compact(claims)
}

func byName(a, b types.NamespacedName) int {
	return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
}

// StayingIn returns the claims that stay in a cluster, as its condition lists them, sorted, without duplicates. Other text is
// left out, as an agent may have written it. None without the condition.
func StayingIn(c *clusterv1alpha1.Cluster) []types.NamespacedName {
	reported := meta.FindStatusCondition(c.Status.Conditions, clusterv1alpha1.ClusterConditionClaimsKept)
	if reported == nil || !meta.IsStatusConditionTrue(c.Status.Conditions, reported.Type) {
		return nil
	}
	names, known := strings.CutPrefix(reported.Message, staying)
	if !known {
		return nil
	}
	names, _, _ = strings.Cut(names, " and ")
	var out []types.NamespacedName
	for text := range strings.SplitSeq(names, ", ") {
		namespace, name, _ := strings.Cut(text, "/")
		if len(validation.IsDNS1123Label(namespace)) == 0 && len(validation.IsDNS1123Subdomain(name)) == 0 {
			out = append(out, types.NamespacedName{Namespace: namespace, Name: name})
		}
	}
	return inOrder(out)
}

// ByCluster returns in which clusters each claim stays, sorted.
func ByCluster(clusters []clusterv1alpha1.Cluster) map[types.NamespacedName][]string {
	out := map[types.NamespacedName][]string{}
	for i := range clusters {
		for _, claim := range StayingIn(&clusters[i]) {
			out[claim] = append(out[claim], clusters[i].Name)
		}
	}
	for _, names := range out {
		slices.Sort(names)
	}
	return out
}

// Turned returns the claims that are listed in only one of two states of a Cluster; either may be nil.
func Turned(before, after *clusterv1alpha1.Cluster) []types.NamespacedName {
	var was, is []types.NamespacedName
	if before != nil {
		was = StayingIn(before)
	}
	if after != nil {
		is = StayingIn(after)
	}
	in := func(list []types.NamespacedName) func(types.NamespacedName) bool {
		return func(c types.NamespacedName) bool { return slices.Contains(list, c) }
	}
	return append(slices.DeleteFunc(slices.Clone(was), in(is)), slices.DeleteFunc(slices.Clone(is), in(was))...)
}
