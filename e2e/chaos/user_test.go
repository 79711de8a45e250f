package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/e2e/chaos/history"
)

// namespace is where everything lives that users write, and versionKey the annotation
// that has an object's version.
const (
	namespace  = "shop"
	versionKey = "example.com/version"
)

// canary is in all Secrets, and must not be seen in a log.
const canary = "CANARY-7f3a61"

// users are how many write at once; each has objects of its own.
const (
	users   = 4
	objects = 6 // of each user, of the kinds in turn
	owner   = client.FieldOwner("users")
)

// setting is what runs before anything is disturbed: policies for all kinds.
const setting = `
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: everywhere, namespace: shop}
spec:
  resourceSelectors: [{apiVersion: v1, kind: ConfigMap}, {apiVersion: v1, kind: Secret}]
  placement: {clusterAffinity: {clusterNames: [east, edge, west]}}
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: divided, namespace: shop}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}]
  placement:
    clusterAffinity: {clusterNames: [east, edge, west]}
    replicaScheduling:
      replicaSchedulingType: Divided
      replicaDivisionPreference: Weighted
      weightPreference:
        staticWeightList:
          - {targetCluster: {clusterNames: [east]}, weight: 1}
          - {targetCluster: {clusterNames: [edge]}, weight: 1}
          - {targetCluster: {clusterNames: [west]}, weight: 1}
`

var kinds = []string{`
apiVersion: v1
kind: ConfigMap
metadata: {name: NAME, namespace: shop, annotations: {example.com/version: "VERSION"}}
data: {version: "VERSION"}
`, `
apiVersion: v1
kind: Secret
metadata: {name: NAME, namespace: shop, annotations: {example.com/version: "VERSION"}}
stringData: {version: "VERSION", canary: CANARY}
`, `
apiVersion: apps/v1
kind: Deployment
metadata: {name: NAME, namespace: shop, annotations: {example.com/version: "VERSION"}}
spec:
  replicas: REPLICAS
  selector: {matchLabels: {app: NAME}}
  template:
    metadata: {labels: {app: NAME}}
    spec: {containers: [{name: web, image: "web:VERSION"}]}
`}

// thing is one object of a user's.
type thing struct {
	name, manifest string
	version        int
	there          bool // as far as the user knows
}

func (o *thing) object() history.Object { return history.Object(o.name) }

// make returns the object in its present version.
func (o *thing) make() (*unstructured.Unstructured, error) {
	text := strings.NewReplacer("NAME", o.name, "VERSION", strconv.Itoa(o.version), "CANARY", canary, "REPLICAS", strconv.Itoa(3+o.version%5)).Replace(o.manifest)
	return parse(text)
}

func parse(text string) (*unstructured.Unstructured, error) {
	obj := &unstructured.Unstructured{}
	err := yaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096).Decode(&obj.Object)
	return obj, err
}

// journal keeps what users wrote and what members showed, in order.
type journal struct {
	mu     sync.Mutex
	writes []history.Write
	sights []history.Sight
}

func (j *journal) wrote(w history.Write) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.writes = append(j.writes, w)
}

func (j *journal) saw(s history.Sight) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.sights = append(j.sights, s)
}

// prepare writes what users' objects need, and waits until they get anywhere.
func (w *world) prepare(t *testing.T) {
	t.Helper()
	for manifest := range strings.SplitSeq(setting, "---") {
		obj, err := parse(manifest)
		if err != nil {
			t.Fatal(err)
		}
		eventually(t, 2*time.Minute, obj.GetKind()+" is written", func(ctx context.Context) error {
			return w.hub.Apply(ctx, client.ApplyConfigurationFromUnstructured(obj), owner)
		})
	}
}

// use makes, changes and deletes a user's objects until ctx ends: what a user does next
// depends on the seed alone, and what comes of it on the fleet.
func (w *world) use(ctx context.Context, user int, seed uint64, to *journal) error {
	dice := rand.New(rand.NewPCG(seed, uint64(user)))
	mine := make([]*thing, objects)
	for i := range mine {
		mine[i] = &thing{name: fmt.Sprintf("user%d-%d", user, i), manifest: kinds[i%len(kinds)]}
	}
	for ctx.Err() == nil {
		o := mine[dice.IntN(len(mine))]
		remove := o.there && dice.IntN(8) == 0
		o.version++
		write := history.Write{Object: o.object(), Version: o.version, Deleted: remove, Begun: time.Now()}
		obj, err := o.make()
		if err != nil {
			return err
		}
		if remove {
			err = w.hub.Delete(context.WithoutCancel(ctx), obj)
		} else {
			err = w.hub.Apply(context.WithoutCancel(ctx), client.ApplyConfigurationFromUnstructured(obj), owner)
		}
		write.Acknowledged = err == nil
		if apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsForbidden(err) {
			return fmt.Errorf("user %d, %s: %w", user, o.name, err)
		}
		o.there = !remove || !write.Acknowledged
		to.wrote(write)
		pause(ctx, time.Duration(100+dice.IntN(400))*time.Millisecond)
	}
	return nil
}

// pause lets time pass.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
