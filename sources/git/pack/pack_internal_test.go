package pack

import (
	"bytes"
	"testing"
)

// FuzzPack passes arbitrary bytes to the reader of transfers.
func FuzzPack(f *testing.F) {
	f.Add([]byte("PACK\x00\x00\x00\x02\x00\x00\x00\x00"))
	f.Add([]byte("PACK\x00\x00\x00\x02\x00\x00\x00\x01\x35x\x9c\xcbH\xcd\xc9\xc9\x07\x00\x06,\x02\x15"))
	f.Fuzz(func(t *testing.T, stream []byte) {
		p, err := Receive(bytes.NewReader(stream), t.TempDir(), Limits{Objects: 1000, Object: 1 << 16, Unpacked: 1 << 20})
		if err == nil {
			p.Close()
		}
	})
}
