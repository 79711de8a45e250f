package build

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/flotilla-io/flotilla/sources/build/sealed"
)

// Job is a build that is run outside this process.
type Job struct {
	Input  Input
	Limits Limits
}

// Runner runs builds outside this process, where a build can be killed, and takes
// neither memory nor time from anything else.
type Runner interface {
	// Run does what New(job.Limits).Build does, and returns each object as JSON.
	// Nothing of the build runs on when it returns. Errors: those of a build, and
	// that of a context that ended; any other is about this machine, not about the
	// files.
	Run(ctx context.Context, job Job) ([][]byte, error)
}

// Faults returns the errors of builds in a fixed order: two processes of one
// program refer to them by their index.
func Faults() []error {
	return []error{ErrPath, ErrEmpty, ErrInvalid, ErrDuplicate, ErrRefused, ErrTooLarge, ErrKustomize, ErrSubstitute, sealed.ErrSealed, sealed.ErrNoKey}
}

// errApart means that something should not be built in this process.
var errApart = errors.New("too large to be built in this process")

// buildApart runs a job by the runner, and decodes the result.
func (b *Builder) buildApart(ctx context.Context, job Job) ([]*unstructured.Unstructured, error) {
	if in := &job.Input; in.Open != nil {
		var err error
		if in.Opened, err = sealed.All(ctx, in.Open, in.Files); err != nil {
			return nil, err
		}
	}
	texts, err := b.apart.Run(ctx, job)
	if err != nil {
		return nil, err
	}
	out := make([]*unstructured.Unstructured, 0, len(texts))
	for n, text := range texts {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		object := &unstructured.Unstructured{}
		if err := json.Unmarshal(text, &object.Object); err != nil || object.GetName() == "" {
			return nil, fmt.Errorf("object %d of a build that was done apart: %w: it cannot be read", n+1, ErrInvalid)
		}
		texts[n] = nil // lets the memory be freed
		out = append(out, object)
	}
	return out, nil
}

// Bounds of what is read and built in a process that does other things, too. Such
// a build cannot be interrupted, but ends within a second or two.
const (
	// bytesHere is how many bytes of YAML may be read, before it is known how many
	// objects there are.
	bytesHere = 2 << 20
	// mostHere is how many objects may be built.
	mostHere = 500
	// comparesHere is how often kustomize may compare two objects: it compares
	// each with all others, in each kustomization.
	comparesHere = 2_500_000
	// changesHere is how many bytes may be processed: all manifests, for each node
	// of what kustomizations and patches ask to change.
	changesHere = 256 << 20
	// nodesHere is how many YAML nodes may be read and built: kustomize has
	// several copies of each in memory.
	nodesHere = 100_000
	// perObject is what an object costs in addition to its bytes.
	perObject = 512
)

// amounts counts what a build reads.
type amounts struct {
	read    int  // bytes of YAML that were read, each once
	objects int  // objects that kustomize will make at most
	bytes   int  // bytes of files that kustomize will read
	nodes   int  // YAML nodes, of files as often as they are used
	sayings int  // YAML nodes of what kustomize is asked to change
	visits  int  // kustomizations that are read
	bounded bool // what exceeds the bounds is built outside this process
}

// fits returns errApart if more was read than may be in this process.
func (a *amounts) fits() error {
	if a.bounded && (a.read > bytesHere || a.nodes > nodesHere || a.objects > mostHere) {
		return errApart
	}
	return nil
}

// small reports whether kustomize may run where it cannot be killed, on what
// fits.
func (i *inspection) small() bool {
	return !i.ownSchemas && !i.ownTypes &&
		i.objects*i.objects*i.visits <= comparesHere &&
		(i.bytes+i.objects*perObject)*i.sayings <= changesHere
}
