package health_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/kustomize"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/flotilla-io/flotilla/api/scheme"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/policies/expression"
	"github.com/flotilla-io/flotilla/reconciler/apply/health"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// assess judges so many ConfigMaps by an expression.
func assess(ctx context.Context, t *testing.T, n int, expressions kustomize.HealthCheckExpressions) error {
	t.Helper()
	hub := fake.NewClientBuilder().WithScheme(scheme.New()).Build()
	req := health.Request{
		As: hub, Observed: map[inventory.ID]*unstructured.Unstructured{},
		Checks: []kustomize.CustomHealthCheck{{APIVersion: "v1", Kind: "ConfigMap", HealthCheckExpressions: expressions}},
	}
	for i := range n {
		obj := object(t, strings.Replace(config, `"name":"web"`, fmt.Sprintf(`"name":"web-%d"`, i), 1))
		e := entryOf(obj)
		req.Entries, req.Observed[e.ID] = append(req.Entries, e), obj
	}
	_, err := health.New(health.Deps{Hub: hub, Live: hub, Templates: templates{}}).Assess(ctx, req)
	return err
}

// endless would take years.
const endless = "[1,2,3,4,5,6,7,8,9,10]"

func nested(n int) string {
	return strings.Repeat(endless+".all(x, ", n) + "true" + strings.Repeat(")", n)
}

// TestExpressionsAreBounded: an expression that does not end by itself is refused
// until it changes, and soon enough not to hold up other Kustomizations.
func TestExpressionsAreBounded(t *testing.T) {
	cases := map[string]struct {
		objects int
		checks  kustomize.HealthCheckExpressions
	}{
		"one that is endless":                 {1, kustomize.HealthCheckExpressions{Current: nested(12)}},
		"one of three is endless":             {1, kustomize.HealthCheckExpressions{Current: "true", Failed: nested(12)}},
		"one that is large, for many objects": {100, kustomize.HealthCheckExpressions{Current: nested(5)}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			err := assess(ctx, t, tc.objects, tc.checks)
			e := loop.As(err, "")
			stalls := e != nil && e.Class == loop.ClassStalled && e.Reason == "InvalidCELExpression"
			slow := errors.Is(err, expression.ErrTime) // on a busy machine
			if !stalls && !slow || !strings.Contains(err.Error(), "spec.healthCheckExprs[0].") {
				t.Errorf("error = %v, want one that stalls and names the field", err)
			}
		})
	}
}

// TestExpressionsEndWithTheirRun: an evaluation ends when the context of its run
// ends.
func TestExpressionsEndWithTheirRun(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("it was deleted")
	cancel(why)
	if err := assess(ctx, t, 1, kustomize.HealthCheckExpressions{Current: nested(12)}); !errors.Is(err, why) {
		t.Errorf("error = %v, want %v", err, why)
	}
}

// TestManyObjectsAreJudged: ordinary expressions are far from the bounds.
func TestManyObjectsAreJudged(t *testing.T) {
	if err := assess(t.Context(), t, 5000, kustomize.HealthCheckExpressions{
		Current: "data.state == 'good' && metadata.?labels.app.orValue('') == 'web'", Failed: "has(data.error)", InProgress: "has(data.state) && data.state == 'wait'",
	}); err != nil {
		t.Error(err)
	}
}
