package health

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/flotilla-io/flotilla/policies/rollup"
)

// remote judges objects in a cluster outside of the fleet, each by what its own status says.
func remote(ctx context.Context, req Request, rules checks) (Assessment, error) {
	out := Assessment{Verdicts: make([]Verdict, len(req.Entries))}
	for i, e := range req.Entries {
		v, obj := Verdict{ID: e.ID, State: rollup.Progressing}, req.Observed[e.ID]
		var err error
		if obj == nil || obj.GroupVersionKind() != e.GroupVersionKind() {
			obj, err = read(ctx, req.As, e.GroupVersionKind(), e.ID)
		}
		rule := evaluator(compute)
		if check := rules[e.GroupVersionKind()]; check != nil {
			rule = check.judge
		}
		switch {
		case apierrors.IsForbidden(err):
			v.State, v.Reason, v.Denied, err = rollup.Failed, err.Error(), true, nil
		case err != nil:
		case obj == nil:
			v.Reason = "does not exist"
		default:
			v, err = byStatus(ctx, v, obj, rule)
		}
		if err != nil {
			return Assessment{}, err
		}
		out.Verdicts[i] = v
	}
	return out, nil
}
