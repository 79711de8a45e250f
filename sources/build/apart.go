package build

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
)

// Job is a build that is done apart from this process.
type Job struct {
	Input  Input
	Limits Limits
}

// Runner builds apart from this process: where a build can be ended, and takes neither
// memory nor time of what else runs here.
type Runner interface {
	// Run does what New(job.Limits).Build does, and returns each object as JSON. When it
	// returns nothing of it runs on. Errors: those of a build, and that of a context that
	// ended; any other is about this machine, not about the files.
	Run(ctx context.Context, job Job) ([][]byte, error)
}

// Faults are the errors that a build may come to, in an order that stays: two processes
// of one program name them by their place in it.
func Faults() []error {
	return []error{ErrPath, ErrEmpty, ErrInvalid, ErrDuplicate, ErrRefused, ErrTooLarge, ErrKustomize, ErrSubstitute}
}

// errApart says that something is not to be built in this process.
var errApart = errors.New("too large to be built in this process")

// buildApart has the runner build, and reads what it comes to.
func (b *Builder) buildApart(ctx context.Context, job Job) ([]*unstructured.Unstructured, error) {
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
		texts[n] = nil // it may be much
		out = append(out, object)
	}
	return out, nil
}

// What is read and built in a process that does other things, too: what is given up
// runs on, and ends within a second or two.
const (
	// bytesHere is how many bytes of YAML are read here, before they are known to be few
	// objects.
	bytesHere = 2 << 20
	// mostHere is how many objects may be built here.
	mostHere = 500
	// comparesHere is how often kustomize may compare two objects: each with each
	// others in each kustomization.
	comparesHere = 2_500_000
	// changesHere is how many bytes may be gone through: all of the manifests, for
	// each thing that kustomizations, patches and the like say.
	changesHere = 256 << 20
	// nodesHere is how many nodes may be read and built here: kustomize holds several
	// copies of each.
	nodesHere = 100_000
	// perObject is what an object takes beside its bytes.
	perObject = 512
)

// amounts are how much there is of what a build reads.
type amounts struct {
	read    int  // bytes of YAML that were read, each once
	objects int  // that kustomize will make, at most
	bytes   int  // of files that kustomize will read
	nodes   int  // of YAML, of files as often as they are used
	sayings int  // nodes of what kustomize is asked to change
	visits  int  // of kustomizations
	bounded bool // what does not fit here is built apart
}

// fits reports by errApart that what was read is more than is read in a process that
// does other things.
func (a *amounts) fits() error {
	if a.bounded && (a.read > bytesHere || a.nodes > nodesHere || a.objects > mostHere) {
		return errApart
	}
	return nil
}

// small reports whether kustomize may run where it cannot be ended, on what fits.
func (i *inspection) small() bool {
	return !i.ownSchemas && !i.ownTypes &&
		i.objects*i.objects*i.visits <= comparesHere &&
		(i.bytes+i.objects*perObject)*i.sayings <= changesHere
}
