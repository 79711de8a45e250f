package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/members"
	"github.com/flotilla-io/flotilla/policies/excerpt"
)

// reading is what a member reported about itself.
type reading struct {
	version string
	kinds   []clusterv1alpha1.APIEnablement
	// missing are the groups and versions whose kinds could not be read, sorted.
	missing []string
	err     error // nothing could be read
}

// mostVersion is how many bytes of what a member calls its version are kept.
const mostVersion = 40

// readKinds reads a member's version and what it serves.
func readKinds(member discovery.DiscoveryInterface) reading {
	info, err := member.ServerVersion()
	if err != nil {
		return reading{err: fmt.Errorf("read the member's version: %w", err)}
	}
	_, lists, err := member.ServerGroupsAndResources()
	var incomplete *discovery.ErrGroupDiscoveryFailed
	if err != nil && !errors.As(err, &incomplete) {
		return reading{err: fmt.Errorf("read the member's kinds: %w", err)}
	}
	out := reading{version: excerpt.Message(info.GitVersion, mostVersion), kinds: enablements(lists)}
	if incomplete != nil {
		for gv := range incomplete.Groups {
			out.missing = append(out.missing, gv.String())
		}
		slices.Sort(out.missing)
	}
	return out
}

// keep returns what is served, with those of before that could not be read now,
// and whether these are all that could not.
func (r *reading) keep(before []clusterv1alpha1.APIEnablement) (kinds []clusterv1alpha1.APIEnablement, all bool) {
	named := func(list []clusterv1alpha1.APIEnablement, gv string) int {
		return slices.IndexFunc(list, func(e clusterv1alpha1.APIEnablement) bool { return e.GroupVersion == gv })
	}
	kinds, all = slices.Clone(r.kinds), true
	for _, gv := range r.missing {
		switch at := named(before, gv); {
		case named(r.kinds, gv) >= 0:
		case at >= 0:
			kinds = append(kinds, before[at])
		default:
			all = false
		}
	}
	sortEnablements(kinds)
	return kinds, all
}

// mostNamed is how many groups a message names.
const mostNamed = 5

// gap names what could not be read; empty where all was.
func (r *reading) gap() string {
	var answer apierrors.APIStatus
	switch {
	case errors.As(r.err, &answer) && answer.Status().Code != 0:
		return fmt.Sprintf("the cluster answers %d when it is asked for its kinds", answer.Status().Code)
	case r.err != nil:
		return "the cluster does not answer when it is asked for its kinds"
	case len(r.missing) > 0:
		return "kinds could not be read of " + excerpt.Names(r.missing, mostNamed)
	default:
		return ""
	}
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
	sortEnablements(out)
	return out
}

func sortEnablements(list []clusterv1alpha1.APIEnablement) {
	slices.SortFunc(list, func(a, b clusterv1alpha1.APIEnablement) int { return cmp.Compare(a.GroupVersion, b.GroupVersion) })
}

// bound is a transport whose requests end with a context: discovery clients
// take none.
type bound struct {
	ctx  context.Context //nolint:containedctx // that is what it is for
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (b bound) RoundTrip(req *http.Request) (*http.Response, error) {
	return b.next.RoundTrip(req.WithContext(b.ctx))
}

// discoveryOf returns a client that reads what a member serves until ctx ends.
func discoveryOf(ctx context.Context, member *members.Member) (discovery.DiscoveryInterface, error) {
	client := *member.HTTP()
	client.Transport = bound{ctx, client.Transport}
	return discovery.NewDiscoveryClientForConfigAndClient(member.Config(), &client)
}
