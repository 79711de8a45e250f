package aggregated

import (
	"bytes"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// plainly decodes what loops write as they and the server write it without reading its kind first, which takes two of
// five looks at each byte: these kinds are stored in the version that the server works with. It comes to what other comes
// to, which has all else.
type plainly struct {
	other runtime.Decoder
	kinds []plain
}

// plain is one kind.
type plain struct {
	heads [][]byte // with one of which it begins: as an object, and as what a patch makes of one
	kind  schema.GroupVersionKind
	empty func() runtime.Object
}

func newPlainly(other runtime.Decoder) plainly {
	of := func(gv schema.GroupVersion, name string, empty func() runtime.Object) plain {
		kind, version := `"kind":"`+name+`",`, `"apiVersion":"`+gv.String()+`",`
		return plain{[][]byte{[]byte("{" + kind + version), []byte("{" + version + kind)}, gv.WithKind(name), empty}
	}
	return plainly{other, []plain{
		of(workv1alpha1.GroupVersion, "Work", func() runtime.Object { return &workv1alpha1.Work{} }),
		of(workv1alpha2.GroupVersion, "ResourceBinding", func() runtime.Object { return &workv1alpha2.ResourceBinding{} }),
		of(workv1alpha2.GroupVersion, "ClusterResourceBinding", func() runtime.Object { return &workv1alpha2.ClusterResourceBinding{} }),
	}}
}

// Decode reads an object, into one that is given or a new one.
func (p plainly) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	for i := range p.kinds {
		if obj := p.kinds[i].read(data, into); obj != nil {
			kind := p.kinds[i].kind
			return obj, &kind, nil
		}
	}
	return p.other.Decode(data, defaults, into)
}

// read reads an object of the kind; nil where that is not known to be one, or is none.
func (p *plain) read(data []byte, into runtime.Object) runtime.Object {
	if !bytes.HasPrefix(data, p.heads[0]) && !bytes.HasPrefix(data, p.heads[1]) {
		return nil
	}
	obj := into
	if obj == nil {
		obj = p.empty()
	} else if reflect.TypeOf(into) != reflect.TypeOf(p.empty()) {
		return nil
	}
	if err := json.Unmarshal(data, obj); err != nil || obj.GetObjectKind().GroupVersionKind() != p.kind {
		return nil
	}
	if into == nil { // what the server works with does not say what it is
		obj.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	}
	return obj
}

// withoutProtobuf offers what our types can be written as.
type withoutProtobuf struct{ runtime.NegotiatedSerializer }

// SupportedMediaTypes are those of the wrapped serializer without protobuf.
func (s withoutProtobuf) SupportedMediaTypes() []runtime.SerializerInfo {
	return slices.DeleteFunc(slices.Clone(s.NegotiatedSerializer.SupportedMediaTypes()), func(info runtime.SerializerInfo) bool {
		return info.MediaType == runtime.ContentTypeProtobuf
	})
}

// DecoderToVersion reads what is sent. Requests that ask for errors about unknown fields, or that are not JSON, are not read plainly.
func (s withoutProtobuf) DecoderToVersion(serializer runtime.Decoder, version runtime.GroupVersioner) runtime.Decoder {
	decoder := s.NegotiatedSerializer.DecoderToVersion(serializer, version)
	for _, info := range s.NegotiatedSerializer.SupportedMediaTypes() {
		if info.MediaType == runtime.ContentTypeJSON && info.Serializer == serializer {
			return newPlainly(decoder)
		}
	}
	return decoder
}
