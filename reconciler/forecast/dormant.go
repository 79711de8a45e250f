package forecast

import (
	"context"
	"slices"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/policies/plan/comparison"
	"github.com/flotilla-io/flotilla/reconciler/apply/builder"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// content is what a Kustomization of the source has in the files, whether it applies that or not.
type content struct {
	objects []*unstructured.Unstructured
	// files is a digest of the files where they cannot be built; empty if that is not known.
	files string
}

func (a content) equal(b content) bool {
	if a.files != "" || b.files != "" {
		return a.files == b.files
	}
	x, _ := builder.Digest(a.objects)
	y, _ := builder.Digest(b.objects)
	return x == y
}

// dormancy finds out about Kustomizations that apply nothing of a revision for now, and will later.
type dormancy struct{ *course }

// contents returns what all Kustomizations of the source have in the files.
func (d dormancy) contents(ctx context.Context) map[client.ObjectKey]content {
	out := map[client.ObjectKey]content{}
	for key, ks := range d.alive {
		if inventory.SourceOf(ks) != d.revision.Source || ks.DeletionTimestamp != nil {
			continue
		}
		m := d.made(ctx, ks)
		out[key] = content{objects: m.objects}
		if m.err != nil {
			from := ks.Spec.Path
			if len(ks.Spec.Components) > 0 { // they may be elsewhere
				from = ""
			}
			out[key] = content{files: d.revision.digest(from)}
		}
	}
	return out
}

// risks returns the Kustomizations whose content is another one than before, and that apply nothing of it for now: nothing else says what
// they will do. Within are those that count, nil for all, and told the risks that are known already.
func (d dormancy) risks(now map[client.ObjectKey]content, within map[client.ObjectKey]bool, told []comparison.Risk) []comparison.Risk {
	if d.before.contents == nil { // it does not come of files
		return nil
	}
	var out []comparison.Risk
	for _, key := range sorted(d.alive) {
		content, is := now[key]
		if _, applies := d.applies(key); !is || applies || within != nil && !within[key] || content.equal(d.before.contents[key]) {
			continue
		}
		risk := comparison.KustomizationRisk(comparison.RiskNotFollowed, key.String(), d.will(d.alive[key]))
		if !slices.ContainsFunc(told, func(r comparison.Risk) bool { return r.Policy == risk.Policy }) {
			out = append(out, risk)
		}
	}
	return out
}

func (d dormancy) will(ks *kustomizev1.Kustomization) string {
	switch {
	case ks.Spec.KubeConfig != nil:
		return "what it applies to a cluster outside of the fleet changes"
	case ks.Spec.Suspend:
		return "it is suspended, and what it applies once it is resumed changes"
	default:
		return "it is refused as before, and what it applies once it is not changes"
	}
}
