package informer

import (
	"runtime"
	"testing"
	"unsafe"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// TestATextThatManyObjectsHaveIsKeptOnce: also where the second object comes long
// after the first, which still has it.
func TestATextThatManyObjectsHaveIsKeptOnce(t *testing.T) {
	made := func(name string) *Observed {
		obj := ship(name)
		obj.SetNamespace(string([]byte("a-namespace-of-many-objects")))
		obj.SetAnnotations(map[string]string{workv1alpha2.WorkNamespaceAnnotation: string([]byte("karmada-es-of-many-objects"))})
		return MetadataOf(obj)
	}
	first := made("one")
	for range 3 {
		runtime.GC()
	}
	second := made("two")
	if unsafe.StringData(first.Namespace) != unsafe.StringData(second.Namespace) {
		t.Error("the namespace is there twice")
	}
	if unsafe.StringData(first.Work.Namespace) != unsafe.StringData(second.Work.Namespace) {
		t.Error("the namespace of the Work is there twice")
	}
	runtime.KeepAlive(first)
}
