package lua

const preloadLimit LNumber = 128

var _fv float64
var _uv uintptr

var preloads [int(preloadLimit)]LValue

func init() {
	for i := 0; i < int(preloadLimit); i++ {
		preloads[i] = LNumber(i)
	}
}

// allocator is what upstream allocates numbers with, in blocks; here each is
// allocated by itself, as Go does it, without unsafe.
type allocator struct{}

func newAllocator(int) *allocator { return &allocator{} }

// LNumber2I takes a number value and returns an interface LValue representing the same number.
func (al *allocator) LNumber2I(v LNumber) LValue {
	// first check for shared preloaded numbers
	if v >= 0 && v < preloadLimit && float64(v) == float64(int64(v)) {
		return preloads[int(v)]
	}

	return v
}
