package commitstatus

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/tenancy"
)

// place is where a sum of a source is posted, under the name that it has by itself.
type place struct {
	repository string
	comments   bool
}

// together joins Providers that post about one source at one place into one status: a forge shows one status of a
// name, whoever was the last to write it. The one that posted first goes on doing so.
func (s *sources) together(list []recipient) []recipient {
	list = slices.SortedStableFunc(slices.Values(list), func(a, b recipient) int { return cmp.Compare(s.newness(a), s.newness(b)) })
	at := map[place]int{}
	var out []recipient
	for _, t := range list {
		where := place{plainAddress(t.repository), t.comments()}
		first, known := at[where]
		if t.provider.Spec.CommitStatusExpr != "" || !known {
			if t.provider.Spec.CommitStatusExpr == "" {
				at[where] = len(out)
			}
			out = append(out, t)
			continue
		}
		for _, of := range t.of {
			if !slices.ContainsFunc(out[first].of, func(have source) bool { return have.ks == of.ks }) {
				out[first].of = append(out[first].of, of)
			}
		}
	}
	return out
}

// newness is 0 of a Provider that posted about the source before.
func (s *sources) newness(t recipient) int {
	if cs := s.existing[t.name]; cs != nil && cs.DeletionTimestamp == nil {
		return 0
	}
	return 1
}

// plainAddress is an address as all write it who mean the same repository.
func plainAddress(repository string) string {
	return strings.ToLower(strings.TrimSuffix(strings.TrimSuffix(repository, "/"), ".git"))
}

// unlike returns the name of a source's status: the qualified one where another namespace posted about a source of
// that name before, in the same repository. What one namespace says must not take the place of what another
// one says.
func (s statuses) unlike(ctx context.Context, own *gitopsv1alpha1.CommitStatus, namespace, repository string, about subject) (string, error) {
	var all gitopsv1alpha1.CommitStatusList
	if err := s.hub.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		return "", fmt.Errorf("list commit statuses: %w", err)
	}
	for i := range all.Items {
		cs := &all.Items[i]
		same := cs.Spec.SourceRef != nil && cs.Namespace != namespace && cs.Spec.Context == about.context && plainAddress(cs.Spec.Repository) == plainAddress(repository)
		if same && (own == nil || tenancy.Older(cs, own) || cs.CreationTimestamp.Equal(&own.CreationTimestamp) && cs.Namespace < own.Namespace) {
			return about.qualified, nil
		}
	}
	return about.context, nil
}
