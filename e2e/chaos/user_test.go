package chaos

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/api/scheme"
	"github.com/flotilla-io/flotilla/e2e/chaos/history"
)

// namespace is where everything lives that users write, and versionKey the annotation
// that has an object's version.
const (
	namespace  = "shop"
	versionKey = "example.com/version"
)

// canary is in all Secrets, and must be seen nowhere else.
const canary = "CANARY-7f3a61"

// canaryOf is what is in a Secret in one of its versions.
func canaryOf(name string, version int) string {
	return fmt.Sprintf("%s-%s-v%d.", canary, name, version)
}

// users are how many write at once; each has objects of its own, of the kinds in turn.
const (
	users = 4
	owner = client.FieldOwner("users")
)

// A policy is for the kinds of its selectors, as far as they have its name as a label.
type policy struct {
	name, selectors, division string
	// roams says that it is changed all the time.
	roams bool
}

const divided = `
    replicaScheduling:
      replicaSchedulingType: Divided
      replicaDivisionPreference: Weighted
      weightPreference:
        staticWeightList:
          - {targetCluster: {clusterNames: [east]}, weight: 1}
          - {targetCluster: {clusterNames: [edge]}, weight: 1}
          - {targetCluster: {clusterNames: [west]}, weight: 1}
`

var policies = []policy{
	{name: "everywhere", selectors: "ConfigMap Secret"},
	{name: "divided", selectors: "Deployment", division: divided},
	{name: "roaming", selectors: "ConfigMap Secret", roams: true},
	{name: "wandering", selectors: "Deployment", division: divided, roams: true},
}

func (p policy) make(version int, clusters []string) (*unstructured.Unstructured, error) {
	var selectors []string
	for kind := range strings.FieldsSeq(p.selectors) {
		api := map[string]string{"Deployment": "apps/v1"}[kind]
		if api == "" {
			api = "v1"
		}
		selectors = append(selectors, fmt.Sprintf("{apiVersion: %s, kind: %s, labelSelector: {matchLabels: {place: %s}}}", api, kind, p.name))
	}
	return parse(fmt.Sprintf(`
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: %s, namespace: %s, annotations: {%s: "%d"}}
spec:
  resourceSelectors: [%s]
  placement:
    clusterAffinity: {clusterNames: [%s]}%s`,
		p.name, namespace, versionKey, version, strings.Join(selectors, ", "), strings.Join(clusters, ", "), p.division))
}

// A kind is that of some of each user's objects, with the policy that places them.
type kind struct {
	name, policy, manifest string
	// rarely says that it is left alone most of the time: what nobody changes has to run
	// all the time.
	rarely bool
}

const configMap = `
apiVersion: v1
kind: ConfigMap
metadata: {name: NAME, namespace: shop, labels: {place: POLICY}, annotations: {example.com/version: "VERSION"}}
data: {version: "VERSION"}
`

const secret = `
apiVersion: v1
kind: Secret
metadata: {name: NAME, namespace: shop, labels: {place: POLICY}, annotations: {example.com/version: "VERSION"}}
data: {version: CODED, canary: CANARY}
`

// deployment never has fewer pods than it is to have while it is rolled out: what is
// missing then is the fleet's doing.
const deployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: NAME, namespace: shop, labels: {place: POLICY}, annotations: {example.com/version: "VERSION"}}
spec:
  replicas: REPLICAS
  strategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: 0, maxSurge: 1}}
  selector: {matchLabels: {app: NAME}}
  template:
    metadata: {labels: {app: NAME}}
    spec: {containers: [{name: web, image: "web:VERSION"}]}
`

var kinds = []kind{
	{name: "ConfigMap", policy: "everywhere", manifest: configMap},
	{name: "Secret", policy: "roaming", manifest: secret},
	{name: "Deployment", policy: "divided", manifest: deployment},
	{name: "ConfigMap", policy: "roaming", manifest: configMap},
	{name: "Secret", policy: "everywhere", manifest: secret},
	{name: "Deployment", policy: "wandering", manifest: deployment},
	{name: "Deployment", policy: "divided", manifest: deployment, rarely: true},
	{name: "Deployment", policy: "wandering", manifest: deployment, rarely: true},
}

// seldom is how many times less often than others a user changes what is rarely changed.
const seldom = 12

// thing is one object of a user's.
type thing struct {
	kind
	name    string
	version int
	there   bool // as far as the user knows
}

// things are a user's.
func things(user int) []*thing {
	var out []*thing
	for i, k := range kinds {
		out = append(out, &thing{kind: k, name: fmt.Sprintf("user%d-%d", user, i)})
	}
	return out
}

func (o *thing) object() history.Object { return nameOf(o.kind.name, namespace, o.name) }

// replicas are those of the present version: some edits scale, most do not.
func (o *thing) replicas() int {
	if o.kind.name != "Deployment" {
		return 0
	}
	return 3 + o.version/6%5
}

// make returns the object in its present version.
func (o *thing) make() (*unstructured.Unstructured, error) {
	version := strconv.Itoa(o.version)
	coded := base64.StdEncoding.EncodeToString
	return parse(strings.NewReplacer("NAME", o.name, "POLICY", o.policy, "VERSION", version, "CODED", coded([]byte(version)),
		"CANARY", coded([]byte(canaryOf(o.name, o.version))), "REPLICAS", strconv.Itoa(o.replicas())).Replace(o.manifest))
}

func parse(text string) (*unstructured.Unstructured, error) {
	obj := &unstructured.Unstructured{}
	err := yaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096).Decode(&obj.Object)
	return obj, err
}

// person is a user, or who moves a policy. One that gets no answer from a control plane
// goes on with the next.
type person struct {
	clients []client.Client
	at      int
	things  []*thing
}

// newPerson begins with one of the control planes.
func (w *world) newPerson(number int) (*person, error) {
	p := &person{at: number}
	for _, hub := range w.hubs {
		config, err := hub.Config()
		if err != nil {
			return nil, err
		}
		config.Timeout, config.WarningHandler = answer, rest.NoWarnings{}
		c, err := client.New(config, client.Options{Scheme: scheme.New()})
		if err != nil {
			return nil, err
		}
		p.clients = append(p.clients, c)
	}
	return p, nil
}

// attempts are how often somebody writes anew what the control plane has written to
// meanwhile.
const attempts = 10

// put writes an object, or removes it, as long as nobody else has: what was sent to a
// control plane that stands still, and arrives once somebody has gone on with another
// one, comes too late. It reports whether anything was sent.
func (p *person) put(ctx context.Context, obj *unstructured.Unstructured, remove bool) (sent bool, err error) {
	at := p.clients[p.at%len(p.clients)]
	defer func() {
		if err != nil && !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
			p.at++
		}
	}()
	for range attempts {
		now := obj.DeepCopy()
		err = at.Get(ctx, client.ObjectKeyFromObject(obj), now)
		there := err == nil
		if client.IgnoreNotFound(err) != nil || (remove && !there) {
			return sent, err
		}
		sent = true
		uid, revision := now.GetUID(), now.GetResourceVersion()
		next := obj.DeepCopy()
		switch {
		case remove:
			err = at.Delete(ctx, next, client.Preconditions{UID: &uid, ResourceVersion: &revision})
		case there:
			next.SetUID(uid)
			next.SetResourceVersion(revision)
			err = at.Apply(ctx, client.ApplyConfigurationFromUnstructured(next), owner, client.ForceOwnership)
		default:
			err = at.Create(ctx, next, owner)
		}
		if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
			break
		}
	}
	return sent, err
}

// prepare writes what users' objects need, and the first version of all of them.
func (w *world) prepare(t *testing.T) {
	t.Helper()
	written := func(obj *unstructured.Unstructured, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		eventually(t, 2*time.Minute, obj.GetKind()+" is written", func(ctx context.Context) error {
			return w.hub.Apply(ctx, client.ApplyConfigurationFromUnstructured(obj), owner)
		})
	}
	written(parse("{apiVersion: v1, kind: Namespace, metadata: {name: " + namespace + "}}"))
	for _, p := range policies {
		begun := time.Now()
		written(p.make(1, clusters))
		w.log.moved(history.Move{Policy: p.name, Version: 1, Clusters: clusters, Acknowledged: true, Begun: begun})
	}
	for user := range users {
		p, err := w.newPerson(user)
		if err != nil {
			t.Fatal(err)
		}
		p.things = things(user)
		w.persons = append(w.persons, p)
		for _, o := range p.things {
			w.policies[o.object()] = o.policy
			for !o.there {
				if err := w.write(t.Context(), p, o, false); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// use makes, changes and deletes a user's objects until ctx ends: what a user does next
// depends on the seed alone, and what comes of it on the fleet.
func (w *world) use(ctx context.Context, user int, seed uint64) error {
	dice := rand.New(rand.NewPCG(seed, uint64(user)))
	mine := w.persons[user]
	for ctx.Err() == nil {
		o := mine.things[dice.IntN(len(mine.things))]
		if o.rarely && dice.IntN(seldom) != 0 {
			continue
		}
		if err := w.write(context.WithoutCancel(ctx), mine, o, o.there && dice.IntN(8) == 0); err != nil {
			return fmt.Errorf("user %d, %s: %w", user, o.name, err)
		}
		pause(ctx, time.Duration(100+dice.IntN(400))*time.Millisecond)
	}
	return nil
}

// write writes an object's next version, or removes it. It errs if the request can
// never succeed.
func (w *world) write(ctx context.Context, who *person, o *thing, remove bool) error {
	o.version++
	obj, err := o.make()
	if err != nil {
		return err
	}
	write := history.Write{Object: o.object(), Version: o.version, Digest: digest(obj), Replicas: o.replicas(), Deleted: remove, Begun: time.Now()}
	sent, err := who.put(ctx, obj, remove)
	if !sent {
		o.there = o.there && !apierrors.IsNotFound(err)
		return never(client.IgnoreNotFound(err))
	}
	write.Acknowledged = err == nil
	o.there = !remove || !write.Acknowledged
	w.log.wrote(write)
	return never(err)
}

// never returns an error of a request that can never succeed.
func never(err error) error {
	if apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsForbidden(err) {
		return err
	}
	return nil
}

// move has a policy name other clusters again and again, until ctx ends.
func (w *world) move(ctx context.Context, p policy, seed uint64) error {
	dice := rand.New(rand.NewPCG(seed, rand.New(rand.NewPCG(0, uint64(len(p.name)))).Uint64()))
	who, err := w.newPerson(len(p.name))
	if err != nil {
		return err
	}
	recent := [][]string{clusters}
	for version := 2; ctx.Err() == nil; version++ {
		pause(ctx, time.Duration(3000+dice.IntN(5000))*time.Millisecond)
		next := some(dice)
		for slices.ContainsFunc(recent, func(before []string) bool { return slices.Equal(before, next) }) {
			next = some(dice)
		}
		recent = append(recent[max(0, len(recent)-1):], next)
		obj, err := p.make(version, next)
		if err != nil {
			return err
		}
		m := history.Move{Policy: p.name, Version: version, Clusters: next, Begun: time.Now()}
		sent, err := who.put(context.WithoutCancel(ctx), obj, false)
		if m.Acknowledged = err == nil; sent {
			w.log.moved(m)
		}
		if err := never(err); err != nil {
			return fmt.Errorf("policy %s: %w", p.name, err)
		}
	}
	return nil
}

// some returns one or more of the clusters.
func some(dice *rand.Rand) []string {
	for {
		if out := slices.DeleteFunc(slices.Clone(clusters), func(string) bool { return dice.IntN(2) == 0 }); len(out) > 0 {
			return out
		}
	}
}

// busy has users write and move everything until the function that it returns is
// called, which returns what went wrong.
func (w *world) busy(ctx context.Context, seed uint64) (rest func() error) {
	ctx, stop := context.WithCancel(ctx)
	done := make(chan error)
	writers := 0
	begin := func(do func() error) {
		writers++
		go func() { done <- do() }()
	}
	for user := range users {
		begin(func() error { return w.use(ctx, user, seed) })
	}
	for _, p := range policies {
		if p.roams {
			begin(func() error { return w.move(ctx, p, seed) })
		}
	}
	return func() error {
		stop()
		var err error
		for range writers {
			err = errors.Join(err, <-done)
		}
		return err
	}
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
