package cluster

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
)

// readKinds reads a member's version and what it serves. Partial says that some
// groups could not be read.
func readKinds(member discovery.DiscoveryInterface) (version string, kinds []clusterv1alpha1.APIEnablement, partial bool, err error) {
	info, err := member.ServerVersion()
	if err != nil {
		return "", nil, false, fmt.Errorf("read the member's version: %w", err)
	}
	_, lists, err := member.ServerGroupsAndResources()
	var incomplete *discovery.ErrGroupDiscoveryFailed
	if err != nil && !errors.As(err, &incomplete) {
		return "", nil, false, fmt.Errorf("read the member's kinds: %w", err)
	}
	return info.GitVersion, enablements(lists), incomplete != nil, nil
}

// enablements lists what is served as a Cluster's status shows it: without
// sub-resources, and sorted.
func enablements(lists []*metav1.APIResourceList) []clusterv1alpha1.APIEnablement {
	var out []clusterv1alpha1.APIEnablement
	for _, list := range lists {
		entry := clusterv1alpha1.APIEnablement{GroupVersion: list.GroupVersion}
		for i := range list.APIResources {
			if r := &list.APIResources[i]; !strings.Contains(r.Name, "/") {
				entry.Resources = append(entry.Resources, clusterv1alpha1.APIResource{Name: r.Name, Kind: r.Kind})
			}
		}
		slices.SortFunc(entry.Resources, func(a, b clusterv1alpha1.APIResource) int {
			return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
		})
		out = append(out, entry)
	}
	slices.SortFunc(out, func(a, b clusterv1alpha1.APIEnablement) int { return cmp.Compare(a.GroupVersion, b.GroupVersion) })
	return out
}
