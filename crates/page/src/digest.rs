//! Base64 (RFC 4648) and SHA-256 (FIPS 180-4): a page names the only script that may run by its digest.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Bytes as text, padded.
pub(crate) fn base64(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let byte = |index: usize| u32::from(group.get(index).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for place in 0..4 {
            let letter = ALPHABET[(bits >> (18 - 6 * place) & 63) as usize];
            text.push(if place <= group.len() { char::from(letter) } else { '=' });
        }
    }
    text
}

/// SHA-256 in base64, as a Content-Security-Policy wants it.
pub(crate) fn sha256_base64(bytes: &[u8]) -> String {
    let digest = sha256(bytes);
    base64(&digest.iter().flat_map(|word| word.to_be_bytes()).collect::<Vec<u8>>())
}

/// The standard takes its constants from the fractions of roots of the first primes: so do we.
fn fraction_of_root(prime: u64, power: u32) -> u32 {
    // floor(root * 2^32): the largest number whose power is at most prime * 2^(32 * power).
    let (mut low, mut high) = (0u128, 1u128 << 36);
    while low + 1 < high {
        let middle = (low + high) / 2;
        // Cubes of 36 bits fit; the prime has 9 bits, and 96 more are shifted in.
        if middle.pow(power) <= u128::from(prime) << (32 * power) {
            low = middle
        } else {
            high = middle
        }
    }
    low as u32
}

fn primes() -> impl Iterator<Item = u64> {
    (2u64..).filter(|number| (2..*number).all(|divisor| number % divisor != 0))
}

fn sha256(bytes: &[u8]) -> [u32; 8] {
    let mut state = [0u32; 8];
    state.iter_mut().zip(primes()).for_each(|(word, prime)| *word = fraction_of_root(prime, 2));
    let mut rounds = [0u32; 64];
    rounds.iter_mut().zip(primes()).for_each(|(word, prime)| *word = fraction_of_root(prime, 3));
    let mut message = bytes.to_vec();
    message.push(0x80);
    message.resize((message.len() + 8).next_multiple_of(64) - 8, 0);
    message.extend((bytes.len() as u64 * 8).to_be_bytes());
    for block in message.chunks(64) {
        compress(&mut state, block, &rounds);
    }
    state
}

/// Section 6.2.2 of the standard, one block.
fn compress(state: &mut [u32; 8], block: &[u8], rounds: &[u32; 64]) {
    let mut schedule = [0u32; 64];
    for (word, bytes) in schedule.iter_mut().zip(block.chunks(4)) {
        *word = u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    }
    for t in 16..64 {
        let (early, late) = (schedule[t - 15], schedule[t - 2]);
        let first = early.rotate_right(7) ^ early.rotate_right(18) ^ early >> 3;
        let second = late.rotate_right(17) ^ late.rotate_right(19) ^ late >> 10;
        let sum = schedule[t - 16].wrapping_add(first).wrapping_add(schedule[t - 7]);
        schedule[t] = sum.wrapping_add(second);
    }
    let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = *state;
    for (round, word) in rounds.iter().zip(schedule) {
        let mix = e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25);
        let choice = e & f ^ !e & g;
        let sum = h.wrapping_add(mix).wrapping_add(choice).wrapping_add(*round).wrapping_add(word);
        let mix = a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22);
        let majority = a & b ^ a & c ^ b & c;
        (h, g, f, e) = (g, f, e, d.wrapping_add(sum));
        (d, c, b, a) = (c, b, a, sum.wrapping_add(mix).wrapping_add(majority));
    }
    for (word, more) in state.iter_mut().zip([a, b, c, d, e, f, g, h]) {
        *word = word.wrapping_add(more);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(text: &str) -> String {
        sha256(text.as_bytes()).iter().map(|word| format!("{word:08x}")).collect()
    }

    #[test]
    fn base64_is_that_of_the_standard() {
        let known = ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"];
        for (length, text) in known.into_iter().enumerate() {
            assert_eq!(base64(&b"foobar"[..length]), text);
        }
    }

    #[test]
    fn digests_are_those_of_the_standard() {
        assert_eq!(hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
        assert_eq!(hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        let two_blocks = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
        assert_eq!(
            hex(two_blocks),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
        );
    }
}
