package tokenizer

import "strings"

// Byte-level vocabularies write every byte as one printable character: those that print as themselves, the others as the characters from
// U+0100 on, in order (Radford et al. 2019; the released encoder).
var byteChar, charByte = byteTables()

func byteTables() (to [256]string, from map[rune]byte) {
	from = map[rune]byte{}
	next := rune(256)
	for b := range 256 {
		r := rune(b)
		if !(b >= '!' && b <= '~' || b >= 0xA1 && b <= 0xAC || b >= 0xAE) {
			r = next
			next++
		}
		to[b], from[r] = string(r), byte(b)
	}
	return to, from
}

// spell writes a text byte by byte in such characters.
func spell(text string) string {
	var s strings.Builder
	s.Grow(len(text) + len(text)/2)
	for i := range len(text) {
		s.WriteString(byteChar[text[i]])
	}
	return s.String()
}

// unspell is the text again; a token with other characters is taken as it stands.
func unspell(s *strings.Builder, token string) {
	for _, r := range token {
		if _, ok := charByte[r]; !ok {
			s.WriteString(token)
			return
		}
	}
	for _, r := range token {
		s.WriteByte(charByte[r])
	}
}
