package rehearsal

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1alpha1 "github.com/flotilla-io/flotilla/api/config/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/interpreter"
	"github.com/flotilla-io/flotilla/policies/interpreter/customizations"
	"github.com/flotilla-io/flotilla/policies/interpreter/lua"
	"github.com/flotilla-io/flotilla/policies/interpreter/native"
	"github.com/flotilla-io/flotilla/policies/plan"
	"github.com/flotilla-io/flotilla/policies/plan/comparison"
	"github.com/flotilla-io/flotilla/policies/whatif"
	"github.com/flotilla-io/flotilla/reconciler/apply/builder"
	"github.com/flotilla-io/flotilla/reconciler/forecast"
	"github.com/flotilla-io/flotilla/reconciler/forecast/snapshot"
	"github.com/flotilla-io/flotilla/reconciler/forecast/supposition"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/sources/artifact"
	"github.com/flotilla-io/flotilla/sources/build"
)

// Means are what a fleet is read, and files are built, with.
type Means struct {
	// Hub is read without a cache.
	Hub    client.Reader
	Mapper meta.RESTMapper
	// Machine runs the customizations of the fleet. Webhooks are not asked: they would see what is not merged.
	Machine *lua.Machine
	// Builder builds files. What it builds is hostile.
	Builder *build.Builder
	// Brake limits deletions.
	Brake inventory.Brake
}

// Fleet is what a control plane holds at one time. It may be used from several goroutines.
type Fleet struct {
	// Digest is the same for fleets that differ in nothing that a plan reads, but for the room in clusters.
	Digest string

	means    Means
	snapshot *snapshot.Snapshot
	input    plan.FleetInput
	// one plan is made at a time: each uses all processors.
	plans sync.Mutex
}

// Read reads the fleet.
func Read(ctx context.Context, means Means, now time.Time) (*Fleet, error) {
	s, err := snapshot.Of(ctx, means.Hub, now)
	if err != nil {
		return nil, err
	}
	s.Withhold()
	digest, err := digestOf(s)
	if err != nil {
		return nil, err
	}
	return &Fleet{Digest: digest, means: means, snapshot: s, input: s.Fleet(rulesOf(s, means.Machine), now)}, nil
}

// rulesOf returns what is known about kinds.
func rulesOf(s *snapshot.Snapshot, machine *lua.Machine) *interpreter.Interpreter {
	var given []*configv1alpha1.ResourceInterpreterCustomization
	for i := range s.Customizations {
		given = append(given, &s.Customizations[i])
	}
	custom, _ := machine.Layer(given) // the problems of scripts are told where they are
	return interpreter.New(custom, customizations.Table(), native.Table())
}

// Follows reports whether a Kustomization has the source.
func (f *Fleet) Follows(source inventory.Source) bool {
	for i := range f.snapshot.Kustomizations {
		if inventory.SourceOf(&f.snapshot.Kustomizations[i]) == source {
			return true
		}
	}
	return false
}

// Clusters returns the labels of each cluster by its name.
func (f *Fleet) Clusters() map[string]map[string]string {
	out := map[string]map[string]string{}
	for _, c := range f.input.Clusters {
		out[c.Name] = c.Labels
	}
	return out
}

// Revision is what a source has.
type Revision struct {
	// Name is for people, such as "main@sha1:9f2c…".
	Name  string
	Files artifact.Files
}

// Base is the fleet once it has applied a revision.
type Base struct {
	fleet  *Fleet
	source inventory.Source
	state  forecast.State
	side   comparison.Side
}

// At returns the fleet once the source's Kustomizations have applied a revision, which is taken to stand.
func (f *Fleet) At(ctx context.Context, source inventory.Source, of Revision) (*Base, error) {
	state, err := forecast.StateOf(f.input, f.snapshot.Kustomizations)
	if err != nil {
		return nil, err
	}
	out, err := f.forecaster(f.build).After(ctx, forecast.Query{Before: state, Revision: forecast.Revision{Source: source, Name: of.Name, Files: tree(of.Files), Digest: below(of.Files), Stands: true}})
	if err != nil {
		return nil, err
	}
	f.plans.Lock()
	defer f.plans.Unlock()
	return &Base{fleet: f, source: source, state: out.After, side: comparison.Plan(out.After.Fleet)}, nil
}

// With says how what each cluster holds differs once another revision is applied.
func (b *Base) With(ctx context.Context, next Revision) (comparison.Comparison, error) {
	return b.compare(ctx, next, b.side, supposition.Supposition{})
}

// If says the same once events have happened to clusters besides. Errors: those of whatif.Fleet.
func (b *Base) If(ctx context.Context, next Revision, events []whatif.Event) (comparison.Comparison, error) {
	policies, err := snapshot.TaintPolicies(ctx, b.fleet.means.Hub)
	if err != nil {
		return comparison.Comparison{}, err
	}
	s, err := supposition.Of(b.state.Fleet, events, policies)
	if err != nil {
		return comparison.Comparison{}, err
	}
	b.fleet.plans.Lock()
	side := comparison.Plan(s.Before(b.state.Fleet))
	b.fleet.plans.Unlock()
	return b.compare(ctx, next, side, s)
}

// compare plans both sides, of which one is given.
func (b *Base) compare(ctx context.Context, next Revision, before comparison.Side, supposed supposition.Supposition) (comparison.Comparison, error) {
	state := b.state
	state.Fleet = supposed.After(before.Fleet) // what is refused, as a cluster is unknown, is so by those that there will be
	bounded := bounded{build: b.fleet.build, most: 2*len(b.state.Fleet.Templates) + more}
	out, err := b.fleet.forecaster(bounded.of).After(ctx, forecast.Query{Before: state, Revision: forecast.Revision{Source: b.source, Name: next.Name, Files: tree(next.Files), Digest: below(next.Files)}})
	if err != nil {
		return comparison.Comparison{}, err
	}
	in := comparison.Input{Base: before, Salt: make([]byte, 16), Risks: out.Risks}
	if _, err := rand.Read(in.Salt); err != nil {
		return comparison.Comparison{}, err
	}
	b.fleet.plans.Lock()
	defer b.fleet.plans.Unlock()
	if ctx.Err() != nil {
		return comparison.Comparison{}, context.Cause(ctx)
	}
	fleet := before.Then(out.After.Fleet)
	fleet.Kept = plan.Keep(before.Fleet, before.Plans)
	in.Head = comparison.Plan(fleet)
	supposed.Describe(&in)
	return comparison.Compare(in), nil
}

func tree(files artifact.Files) *build.Tree {
	return build.NewTree(files.Contents()).WithLinks(files.Links())
}

// below returns digests of files that may be read from a path on: those below it or, where one of them may lead elsewhere, all.
func below(files artifact.Files) func(path string) string {
	names := slices.Sorted(maps.Keys(files))
	return func(from string) string {
		folder := strings.Trim(path.Join("/", from), "/")
		inside := func(name string) bool { return folder == "" || strings.HasPrefix(name, folder+"/") }
		all := slices.ContainsFunc(names, func(name string) bool {
			return inside(name) && (files[name].Link || bytes.Contains(files[name].Data, []byte("../")))
		})
		hash := sha256.New()
		for _, name := range names {
			if all || inside(name) {
				fmt.Fprintf(hash, "%q %d %t\n", name, len(files[name].Data), files[name].Link)
				hash.Write(files[name].Data)
			}
		}
		return hex.EncodeToString(hash.Sum(nil))
	}
}

// building builds what a Kustomization holds of files.
type building = func(ctx context.Context, ks *kustomizev1.Kustomization, files *build.Tree) ([]*unstructured.Unstructured, error)

// more is how many objects a change may bring at least: each is planned for all clusters. A fleet may double.
const more = 1000

// bounded builds until there are too many objects.
type bounded struct {
	build       building
	most, built int
}

func (b *bounded) of(ctx context.Context, ks *kustomizev1.Kustomization, files *build.Tree) ([]*unstructured.Unstructured, error) {
	if b.built > b.most {
		return nil, b.err()
	}
	objects, err := b.build(ctx, ks, files)
	if b.built += len(objects); err == nil && b.built > b.most {
		return nil, b.err()
	}
	return objects, err
}

func (b *bounded) err() error {
	return fmt.Errorf("all Kustomizations together hold more than %d objects, twice of what the fleet has and %d: bring them by several changes", b.most, more)
}

func (f *Fleet) forecaster(build building) *forecast.Forecaster {
	return &forecast.Forecaster{
		Build:    build,
		Eligible: func(ks *kustomizev1.Kustomization, _ string) bool { return ks.Spec.KubeConfig == nil },
		Scope:    f.scope, Brake: f.means.Brake,
	}
}

func (f *Fleet) scope(apiVersion, kind string) (namespaced, known bool) {
	gvk := schema.FromAPIVersionAndKind(apiVersion, kind)
	mapping, err := f.means.Mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return false, false
	}
	return mapping.Scope.Name() == meta.RESTScopeNameNamespace, true
}

func (f *Fleet) build(ctx context.Context, ks *kustomizev1.Kustomization, files *build.Tree) ([]*unstructured.Unstructured, error) {
	variables := standIns{hub: f.means.Hub, shown: shownTo(f.snapshot.Kustomization(ks.Namespace, ks.Name))}
	return builder.FromFiles(ctx, f.means.Builder, files, builder.Input{Kustomization: ks, As: variables, Encrypted: func(string) {}})
}
